"""Reads the options of a form, query or REST request into a `GPURequest`.

`gpuspawner.options.declared` declares each option once; the form, the parser, the stored options
and the JSON Schema follow from it. Each value of a request is one that the administrator lists or
lets users enter.
"""

from gpuspawner.options.declared import (
    ACCELERATOR,
    CPU,
    GPUS,
    IMAGE,
    MEMORY,
    NAMES,
    FieldError,
    Option,
    Written,
    in_cores,
    schema,
)
from gpuspawner.options.parsing import (
    OF,
    Gone,
    GPURequest,
    fall_back,
    from_form,
    keep,
    parse,
    user_options,
)

__all__ = [
    "ACCELERATOR",
    "CPU",
    "GPUS",
    "IMAGE",
    "MEMORY",
    "NAMES",
    "OF",
    "FieldError",
    "GPURequest",
    "Gone",
    "Option",
    "Written",
    "fall_back",
    "from_form",
    "in_cores",
    "keep",
    "parse",
    "schema",
    "user_options",
]
