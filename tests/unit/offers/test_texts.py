"""Which texts are image references; the cases are those of container runtimes."""

import pytest

from gpuspawner.offers.texts import is_reference

pytestmark = pytest.mark.each_python

DIGEST = "sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    "text",
    [
        "small:1",
        "jupyter/base-notebook",
        "quay.io/jupyter/base-notebook:2026-10-05",
        "localhost:5000/a/b_c/d.e__f:V1.0",
        "[::1]:5000/lab",
        f"lab@{DIGEST}",
        f"registry.example.org/lab:1@{DIGEST}",
        "REGISTRY.example.org/lab",
    ],
)
def test_every_form_of_reference_is_accepted(text):
    assert is_reference(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " lab",
        "lab:1\n",
        "lab 1",
        "Lab",
        "lab:",
        "lab:-1",
        "lab:" + "1" * 129,
        "lab@sha256:0123",
        "https://quay.io/lab",
        "quay.io//lab",
        "../lab",
        "lab\x00",
        "lаb",  # has a letter of another alphabet
        "a" * 501,
    ],
)
def test_a_text_that_no_runtime_could_pull_is_not_a_reference(text):
    assert not is_reference(text)
