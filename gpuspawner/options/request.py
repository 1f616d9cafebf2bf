"""The results of reading options: a request, or errors."""

from dataclasses import asdict, dataclass
from typing import TypeAlias

Written: TypeAlias = str | int | float | None
"""A choice as `user_options` holds it."""


@dataclass(frozen=True, slots=True)
class GPURequest:
    """A request of a user, in which every value is offered.

    Attributes:
        accelerator: Key of an accelerator; None for a server without a GPU.
        gpus: Number of GPUs; 0 without an accelerator, and only then.
        image: Key of an image, or the reference of an image that isn't listed; None if users can't
            choose the image.
        memory: Text of an offered memory size; None if users can't choose the memory.
        cpu: Cores; None if users can't choose the CPU.
    """

    accelerator: str | None = None
    gpus: int = 0
    image: str | None = None
    memory: str | None = None
    cpu: int | float | None = None


@dataclass(frozen=True, slots=True)
class FieldError:
    """An error at an option.

    Attributes:
        field: Name of the option; empty if the error is about the request as a whole.
        text: Whole sentences in the user's language: what is wrong, and what is allowed. Plain
            text, not yet escaped for HTML.
    """

    field: str
    text: str


def user_options(request: GPURequest) -> dict[str, Written]:
    """Return a request as JupyterHub stores it. `parse` reads it as the same request."""
    return asdict(request)
