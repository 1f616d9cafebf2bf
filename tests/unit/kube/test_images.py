"""Names of images: what users and administrators write, and what nodes list."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.kube.images import canonical, may_be_outdated

DIGEST = "sha256:" + "0f" * 32


@pytest.mark.parametrize(
    ("written", "listed"),
    [
        ("ubuntu", "docker.io/library/ubuntu:latest"),
        ("ubuntu:24.04", "docker.io/library/ubuntu:24.04"),
        ("library/ubuntu:24.04", "docker.io/library/ubuntu:24.04"),
        ("docker.io/ubuntu:24.04", "docker.io/library/ubuntu:24.04"),
        ("index.docker.io/jupyter/lab:1", "docker.io/jupyter/lab:1"),
        ("jupyter/lab", "docker.io/jupyter/lab:latest"),
        ("quay.io/jupyter/lab", "quay.io/jupyter/lab:latest"),
        ("quay.io/jupyter/lab:1", "quay.io/jupyter/lab:1"),
        ("localhost/lab:1", "localhost/lab:1"),
        ("registry:5000/lab", "registry:5000/lab:latest"),
        ("Registry/lab:1", "Registry/lab:1"),
        ("registry:5000/team/lab:1", "registry:5000/team/lab:1"),
        (f"lab@{DIGEST}", f"docker.io/library/lab@{DIGEST}"),
        (f"quay.io/lab:1@{DIGEST}", f"quay.io/lab@{DIGEST}"),
    ],
)
def test_short_names_are_completed_as_container_runtimes_do(written: str, listed: str) -> None:
    assert canonical(written) == canonical(listed) == listed


PART = st.from_regex(r"[a-z0-9]{1,8}", fullmatch=True)
REGISTRY = st.sampled_from(["quay.io", "localhost", "registry:5000", "docker.io"])
NAME = st.builds("{}/{}/{}".format, REGISTRY, PART, PART)
ENDING = st.sampled_from(["", ":1.0", ":latest", f"@{DIGEST}"])


def normalized(name: str) -> str:
    """As `normalizedImageName` of kube-scheduler 1.36.2 (ImageLocality)."""
    return f"{name}:latest" if name.rfind(":") <= name.rfind("/") else name


@given(NAME, ENDING)
def test_complete_names_are_those_of_kube_scheduler(name: str, ending: str) -> None:
    assert canonical(name + ending) == normalized(name + ending)


@given(st.text(st.sampled_from("aZ0.:/@-<>\n\0"), max_size=20) | st.text(max_size=20))
def test_whatever_a_node_lists_has_one_name(text: str) -> None:
    assert canonical(text) == canonical(text)
    assert canonical(canonical(text)) == canonical(text)


@pytest.mark.parametrize(
    ("image", "policy", "outdated"),
    [
        ("lab:1", None, False),
        ("lab:1", "IfNotPresent", False),
        ("lab:1", "Always", True),
        ("lab", None, True),
        ("lab:latest", None, True),
        ("lab:latest", "IfNotPresent", False),
        (f"lab@{DIGEST}", None, False),
    ],
)
def test_the_tag_latest_and_the_policy_always_may_bring_a_newer_image(
    image: str, policy: str | None, outdated: bool
) -> None:
    assert may_be_outdated(image, policy) is outdated
