"""What an image reference looks like: `quay.io/jupyter/base-notebook:2026-10-05`.

The grammar is that of github.com/distribution/reference (`reference.go`, v0.6), by which container
runtimes read a pod's image; the API server itself takes almost any text, and the pod then waits.
"""

import re

_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)"
_DOMAIN = rf"(?:(?:{_HOST}(?:\.{_HOST})*|\[[A-Fa-f0-9:]+\])(?::[0-9]+)?)"
_PART = r"(?:[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)"
_TAG = r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})"
_ALGORITHM = r"(?:[A-Za-z][A-Za-z0-9]*(?:[_+.-][A-Za-z][A-Za-z0-9]*)*)"
_DIGEST = rf"(?:{_ALGORITHM}:[0-9A-Fa-f]{{32,128}})"

REFERENCE = rf"(?:{_DOMAIN}/)?{_PART}(?:/{_PART})*(?::{_TAG})?(?:@{_DIGEST})?"
"""A regular expression that the whole of a reference matches."""

LONGEST = 500
"""Characters: a name of 255, a tag of 128, and a digest."""

_REFERENCE = re.compile(REFERENCE)


def is_reference(text: str) -> bool:
    """Whether a container runtime would take a text for an image reference."""
    return len(text) <= LONGEST and _REFERENCE.fullmatch(text) is not None


def whole(expression: str) -> str:
    r"""An expression that finds only texts that *expression* matches as a whole.

    It means the same to Python and to the ECMAScript of JSON Schema; to Python alone, ``$`` also
    matches before a last line break.
    """
    return rf"^(?:{expression})$(?!\n)"
