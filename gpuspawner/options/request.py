"""What comes out of reading options."""

from dataclasses import asdict, dataclass
from typing import TypeAlias

Written: TypeAlias = str | int | float | None
"""A choice as it stands in `user_options`."""


@dataclass(frozen=True, slots=True)
class GPURequest:
    """What a person asks for, every part of it on offer.

    Attributes:
        accelerator: Key of an accelerator; None: a server without a GPU.
        gpus: How many GPUs; 0 exactly where there is no accelerator.
        image: Key of an image, or a reference that was written in; None where the image is not a
            choice.
        memory: Text of a memory size on offer; None where memory is not a choice.
        cpu: Cores; None where CPU is not a choice.
    """

    accelerator: str | None = None
    gpus: int = 0
    image: str | None = None
    memory: str | None = None
    cpu: int | float | None = None


@dataclass(frozen=True, slots=True)
class FieldError:
    """Why an option cannot be had.

    Attributes:
        field: Name of the option; empty where it is the request as a whole.
        text: A sentence: what was wrong and what is allowed. Plain text, not yet escaped for HTML.
    """

    field: str
    text: str


def user_options(request: GPURequest) -> dict[str, Written]:
    """A request as JupyterHub stores it; read again, it is the same request."""
    return asdict(request)
