"""What the kubelet says of an image that is pulled; an id names the public thread or version."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.troubles.pulls import DURATION, Pulled, Pulling, read, seconds

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
def test_each_unit_counts(text: str, expected: float) -> None:
    assert re.fullmatch(DURATION, text)
    assert seconds(text) == pytest.approx(expected)


@pytest.mark.parametrize("text", ["", "3", "s", "3 s", "-3s", "9" * 400 + "s"])
def test_another_text_is_no_duration(text: str) -> None:
    assert re.fullmatch(DURATION, text) is None


NETWORK_TOOLS = "jupyterhub/k8s-network-tools:2.0.1-0.dev.git.6000.h3053d41b"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param('Pulling image "alpine"', Pulling("alpine"), id="dandi/dandi-hub#89"),
        pytest.param('pulling image "alpine"', Pulling("alpine"), id="1.13"),
        pytest.param(
            'Successfully pulled image "alpine" in 1.466729067s (3m53.352084967s including'
            " waiting)",
            Pulled("alpine", seconds=1.466729067, with_waiting=233.352084967),
            id="dandi/dandi-hub#89, 1.27",
        ),
        pytest.param(
            f'Successfully pulled image "{NETWORK_TOOLS}" in 679.368724ms (679.380164ms including'
            " waiting)",
            Pulled(NETWORK_TOOLS, seconds=0.679368724, with_waiting=0.679380164),
            id="dandi/dandi-hub#89, milliseconds",
        ),
        pytest.param(
            'Successfully pulled image "busybox" in 4.703566251s (4.703577848s including waiting)',
            Pulled("busybox", seconds=4.703566251, with_waiting=4.703577848),
            id="2i2c-org/infrastructure#2815",
        ),
        pytest.param(
            'Successfully pulled image "quay.io/jupyter/base:1" in 1m2.5s (1m3s including'
            " waiting). Image size: 1234567890 bytes.",
            Pulled("quay.io/jupyter/base:1", seconds=62.5, with_waiting=63, size=1234567890),
            id="1.30-1.36",
        ),
        pytest.param(
            'Successfully pulled image "a" in 1h0m3s', Pulled("a", seconds=3603), id="1.20"
        ),
        pytest.param('Successfully pulled image "a"', Pulled("a"), id="1.19"),
        pytest.param(
            'Container image "jupyterhub/mybinder.org-tc-init:1" already present on machine',
            Pulled("jupyterhub/mybinder.org-tc-init:1", was_there=True),
            id="jupyterhub/mybinder.org-deploy#2712",
        ),
        pytest.param(
            'Container image "a" already present on machine and can be accessed by the pod',
            Pulled("a", was_there=True),
            id="1.34-1.36",
        ),
        pytest.param('Successfully pulled image "a" in µs', Pulled("a"), id="no number"),
        pytest.param('Failed to pull image "a": b', None, id="failed"),
    ],
)
def test_a_pull_is_read_with_all_its_figures(message, expected) -> None:
    found = read(message)

    if isinstance(expected, Pulled) and expected.seconds is not None:
        assert isinstance(found, Pulled)
        assert found.seconds == pytest.approx(expected.seconds)
        assert found.with_waiting == pytest.approx(expected.with_waiting)
        assert (found.image, found.size) == (expected.image, expected.size)
    else:
        assert found == expected


@given(
    st.lists(
        st.sampled_from(['Successfully pulled image "a"', " in ", "1h", "9" * 30, "ms", "("])
        | st.text(max_size=5),
        max_size=8,
    ).map("".join)
)
def test_any_text_is_read(message) -> None:
    read(message)
