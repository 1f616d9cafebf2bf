"""What the kubelet says of an image that is pulled; an id names the public thread or version."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.troubles.pulls import DURATION, Pulled, Pulling, read, seconds
from tests.unit.makers.trouble_tables import meaning

pytestmark = pytest.mark.each_python


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3m53.352084967s", 233.352084967),
        ("679.368724ms", 0.679368724),
        ("1h0m3s", 3603),
        ("12.5µs", 12.5e-6),  # the sign for micro
        ("12.5μs", 12.5e-6),  # the Greek letter
        ("12us", 12e-6),
        ("7ns", 7e-9),
        ("0s", 0),
    ],
)
def test_each_unit_counts(text, expected):
    assert re.fullmatch(DURATION, text)
    assert seconds(text) == pytest.approx(expected)


@pytest.mark.parametrize("text", ["", "3", "s", "3 s", "-3s", "9" * 400 + "s"])
def test_another_text_is_no_duration(text):
    assert re.fullmatch(DURATION, text) is None


SAID = {
    Pulling("alpine"): {
        "dandi/dandi-hub#89": 'Pulling image "alpine"',
        "1.13": 'pulling image "alpine"',
    },
    Pulled("alpine", seconds=1.466729067, with_waiting=233.352084967): {
        "dandi/dandi-hub#89, 1.27": (
            'Successfully pulled image "alpine" in 1.466729067s (3m53.352084967s including waiting)'
        ),
    },
    Pulled("quay.io/jupyter/base:1", seconds=62.5, with_waiting=63, size=1234567890): {
        "1.30-1.36": (
            'Successfully pulled image "quay.io/jupyter/base:1" in 1m2.5s (1m3s including'
            " waiting). Image size: 1234567890 bytes."
        ),
    },
    Pulled("a", seconds=3603): {"1.20": 'Successfully pulled image "a" in 1h0m3s'},
    Pulled("a"): {
        "1.19": 'Successfully pulled image "a"',
        "no number": 'Successfully pulled image "a" in µs',
    },
    Pulled("jupyterhub/mybinder.org-tc-init:1", was_there=True): {
        "jupyterhub/mybinder.org-deploy#2712": (
            'Container image "jupyterhub/mybinder.org-tc-init:1" already present on machine'
        )
    },
    Pulled("a", was_there=True): {
        "1.34-1.36": (
            'Container image "a" already present on machine and can be accessed by the pod'
        )
    },
    None: {"failed": 'Failed to pull image "a": b'},
}


@pytest.mark.parametrize(("message", "expected"), meaning(SAID))
def test_a_pull_is_read_with_all_its_figures(message, expected):
    assert read(message) == expected


@given(
    st.lists(
        st.sampled_from(['Successfully pulled image "a"', " in ", "1h", "9" * 30, "ms", "("])
        | st.text(max_size=5),
        max_size=8,
    ).map("".join)
)
def test_any_text_is_read(message):
    read(message)
