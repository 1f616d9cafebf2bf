"""What a container's configuration lacks."""

import pytest

from gpuspawner.launch.config_faults import of_config
from gpuspawner.launch.trouble import Fault, Kind


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ('secret "hub-token" not found', Kind.SECRET_MISSING, "hub-token"),
        ('secrets "hub-token" not found', Kind.SECRET_MISSING, "hub-token"),
        ('configmap "course" not found', Kind.CONFIG_MAP_MISSING, "course"),
        ("couldn't find key api-token in Secret hub/tokens", Kind.KEY_MISSING, "api-token"),
        ("couldn't find key a in ConfigMap hub/course", Kind.KEY_MISSING, "a"),
        ("references non-existent secret key: tls.crt", Kind.KEY_MISSING, "tls.crt"),
        ("configmap references non-existent config key: a", Kind.KEY_MISSING, "a"),
        ('environment variable key "A" not found in file "/e"', Kind.KEY_MISSING, "A"),
    ],
)
def test_what_is_missing_is_named_and_may_still_come(text: str, kind: Kind, name: str) -> None:
    fault = of_config(text)

    assert (fault.kind, fault.about.name, fault.is_final) == (kind, name, False)


@pytest.mark.parametrize(
    "text",
    [
        (
            'container has runAsNonRoot and image will run as root (pod: "jupyter-ann_hub(5f1c)",'
            " container: notebook)"
        ),
        (
            "container has runAsNonRoot and image has non-numeric user (jovyan), cannot verify"
            " user is non-root"
        ),
        "container's runAsUser (0) breaks non-root policy",
    ],
)
def test_an_image_that_runs_as_root_never_starts(text: str) -> None:
    assert of_config(text) == Fault(Kind.RUNS_AS_ROOT, is_final=True)


def test_other_texts_are_not_known() -> None:
    assert of_config("odd") is None
