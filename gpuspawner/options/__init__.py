"""What a person chose, from form, query or REST, read into a `GPURequest`.

Each option is declared once, in `gpuspawner.options.declared`; form, check, stored options and JSON
Schema all follow from it. What arrives here is hostile until it has been read: every value that
gets through is one of the administrator's, or one that the administrator lets people write in.
"""

from gpuspawner.options.declared import (
    ACCELERATOR,
    CPU,
    GPUS,
    IMAGE,
    MEMORY,
    NAMES,
    OPTIONS,
    Option,
    WrittenIn,
)
from gpuspawner.options.forms import OF, from_form
from gpuspawner.options.parsing import Gone, fall_back, keep, parse
from gpuspawner.options.request import FieldError, GPURequest, Written, user_options
from gpuspawner.options.schema import schema

__all__ = [
    "ACCELERATOR",
    "CPU",
    "GPUS",
    "IMAGE",
    "MEMORY",
    "NAMES",
    "OF",
    "OPTIONS",
    "FieldError",
    "GPURequest",
    "Gone",
    "Option",
    "Written",
    "WrittenIn",
    "fall_back",
    "from_form",
    "keep",
    "parse",
    "schema",
    "user_options",
]
