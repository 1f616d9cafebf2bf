"""The options as a JSON Schema, for programs that start servers and for other people's forms.

It accepts exactly the options that `gpuspawner.options.parse` reads into a request.
"""

from collections.abc import Iterator

from gpuspawner.offers import Accelerator, Offers
from gpuspawner.options.declared import ABOUT_ACCELERATOR, ACCELERATOR, GPUS, OPTIONS
from gpuspawner.options.spelling import Key, Schema

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def schema(offers: Offers) -> Schema:
    """Return the JSON Schema (draft 2020-12) of the options for these offers, as plain data."""
    about = {
        ACCELERATOR: {"type": ["string", "null"], "description": ABOUT_ACCELERATOR},
        **{it.name: {"type": [it.type, "null"], "description": it.help} for it in OPTIONS},
    }
    return {
        "$schema": DRAFT,
        "title": "Options of a server",
        "type": "object",
        "properties": about,
        "additionalProperties": False,
        "anyOf": [*_named(offers), *_unnamed(offers)],
    }


def _named(offers: Offers) -> Iterator[Schema]:
    """Yield a case for each accelerator that is chosen by its key, and one for none."""
    for accelerator in offers.accelerators.values():
        key = Key(accelerator.key, accelerator.display_name).schema()
        yield _case(offers, accelerator, {ACCELERATOR: key}, required=[ACCELERATOR])
    none: Schema = {"type": "null", "title": "No GPU"}
    yield _case(offers, None, {ACCELERATOR: none}, required=[ACCELERATOR])


def _unnamed(offers: Offers) -> Iterator[Schema]:
    """Yield the cases in which the accelerator is left out."""
    chosen = offers.accelerators.get(offers.default_accelerator or "")
    if chosen is not None:
        yield _without_word(_case(offers, chosen, {}))
        yield _without_word(_case(offers, None, {GPUS.name: {"const": 0}}, required=[GPUS.name]))
        return
    yield _without_word(_case(offers, None, {}))
    if len(offers.accelerators) == 1:
        (only,) = offers.accelerators.values()
        count = {"type": GPUS.type, **GPUS.schema(offers.choices(only))}
        yield _without_word(_case(offers, only, {GPUS.name: count}, required=[GPUS.name]))


def _without_word(case: Schema) -> Schema:
    return {**case, "not": {"required": [ACCELERATOR]}}


def _case(
    offers: Offers,
    accelerator: Accelerator | None,
    exactly: dict[str, Schema],
    required: list[str] | None = None,
) -> Schema:
    choices = offers.choices(accelerator)
    properties = {option.name: option.schema(choices) for option in OPTIONS}
    return {"properties": {**properties, **exactly}, "required": required or []}
