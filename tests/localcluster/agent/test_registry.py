"""Names of images, and why one can't be pulled."""

from __future__ import annotations

import pytest

from localcluster.agent.registry import ERRORS, error, fault_of, invalid_name, tagged

DIGEST = "sha256:" + "0f" * 32


@pytest.mark.parametrize(
    "image",
    [
        "ubuntu",
        "jupyter/base-notebook:2026-01-05",
        "localhost:5000/lab",
        "quay.io/jupyter/pytorch-notebook:cuda12-latest",
        f"ghcr.io/team/lab@{DIGEST}",
        f"ghcr.io/team/lab:1@{DIGEST}",
    ],
)
def test_names_that_containerd_reads_are_valid(image: str) -> None:
    assert invalid_name(image) == ""


@pytest.mark.parametrize("image", ["", "quay.io/lab:", "quay.io/a b", "lab:1@sha256:12"])
def test_names_that_it_cannot_read_are_not(image: str) -> None:
    assert invalid_name(image) == f'couldn\'t parse image name "{image}": invalid reference format'


@pytest.mark.parametrize(
    ("image", "asked"),
    [
        ("ubuntu", "ubuntu:latest"),
        ("localhost:5000/lab", "localhost:5000/lab:latest"),
        ("quay.io/lab:1", "quay.io/lab:1"),
        (f"quay.io/lab@{DIGEST}", f"quay.io/lab@{DIGEST}"),
    ],
)
def test_an_image_without_a_tag_is_the_latest(image: str, asked: str) -> None:
    assert tagged(image) == asked


def test_an_image_s_registry_may_name_its_fault() -> None:
    assert fault_of("rate-limit.localcluster.invalid/lab:1") == "rate-limit"
    assert fault_of("quay.io/lab:1") == ""


@pytest.mark.parametrize("fault", sorted(ERRORS))
def test_every_fault_speaks_of_the_image_or_its_registry(fault: str) -> None:
    said = error(fault, "quay.io/jupyter/lab")

    assert "quay.io" in said
    assert "{" not in said


def test_an_image_without_a_registry_is_docker_hub_s() -> None:
    assert '"docker.io/library/ubuntu:latest"' in error("not-found", "ubuntu")
    assert "registry-1.docker.io/v2/jupyter/lab/manifests/2" in error(
        "unreachable", "jupyter/lab:2"
    )
