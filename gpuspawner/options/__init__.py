"""Reads the options of a form, query or REST request into a `GPURequest`.

`gpuspawner.options.declared` declares each option once. The form, the parser, the stored options
and the JSON Schema follow from it. Options are untrusted until they have been parsed: each value of
a request is one that the administrator lists, or one that the administrator lets users enter.
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
