"""Reads the options that somebody sent: into a request, or into errors at fields."""

from collections.abc import Mapping
from dataclasses import dataclass

from msgspec import convert

from gpuspawner.offers import Accelerator, Offers
from gpuspawner.options import wording
from gpuspawner.options.declared import ACCELERATOR, GPUS, NAMES, OPTIONS
from gpuspawner.options.request import FieldError, GPURequest
from gpuspawner.options.spelling import Number
from gpuspawner.quoting import quote


@dataclass(frozen=True, slots=True)
class Gone:
    """An earlier choice that is no longer offered.

    Attributes:
        field: Name of the option.
        value: A short, harmless quote of the choice, not yet escaped for HTML.
    """

    field: str
    value: str


def parse(raw: object, offers: Offers) -> GPURequest | tuple[FieldError, ...]:
    """Read untrusted options into a request, or return all their errors.

    An option that is left out or null gets its configured default. A null accelerator asks for a
    server without a GPU.
    """
    if not isinstance(raw, Mapping):
        return (FieldError("", wording.not_options(raw, NAMES)),)
    unknown = _unknown(raw)
    accelerator = _accelerator(raw, offers)
    if isinstance(accelerator, FieldError):
        return (*unknown, accelerator)
    choices = offers.choices(accelerator)
    model = accelerator.display_name if accelerator else ""
    found = {option.name: option.read(raw.get(option.name), choices, model) for option in OPTIONS}
    errors = *unknown, *(value for value in found.values() if isinstance(value, FieldError))
    if errors:
        return errors
    return convert({ACCELERATOR: accelerator and accelerator.key, **found}, GPURequest)


def keep(raw: object, offers: Offers) -> GPURequest:
    """Read options without those that aren't offered, so that a form keeps the other choices."""
    return fall_back(raw, offers)[0]


def fall_back(raw: object, offers: Offers) -> tuple[GPURequest, tuple[Gone, ...]]:
    """Read stored options without those that are no longer offered, and return these as well."""
    kept = dict(raw) if isinstance(raw, Mapping) else {}
    kept = {name: value for name, value in kept.items() if name in NAMES}
    gone: list[Gone] = []
    while not isinstance(read := parse(kept, offers), GPURequest):
        wrong = [error.field for error in read if error.field in kept]
        # An error at an option that was left out: a count without an accelerator. Drop everything.
        dropped = wrong or list(kept)
        gone += [Gone(name, quote(kept[name])) for name in dropped]
        kept = {name: value for name, value in kept.items() if name not in dropped}
    return read, tuple(gone)


def _unknown(raw: Mapping[object, object]) -> tuple[FieldError, ...]:
    unknown = [name for name in raw if name not in NAMES]
    return (FieldError("", wording.unknown_options(unknown, NAMES)),) if unknown else ()


def _accelerator(raw: Mapping[object, object], offers: Offers) -> Accelerator | FieldError | None:
    """Return the accelerator that is named, or that follows from the other options."""
    if ACCELERATOR not in raw:
        return _unnamed(raw.get(GPUS.name), offers)
    given = raw[ACCELERATOR]
    if given is None:
        return None
    found = offers.accelerator(given) if isinstance(given, str) else None
    if found is not None:
        return found
    keys = offers.accelerators
    is_text = isinstance(given, str)
    problem = wording.not_offered(given, keys) if is_text else wording.not_text(given)
    return FieldError(ACCELERATOR, f"{problem} {wording.choose_accelerator(keys)}")


def _unnamed(gpus: object, offers: Offers) -> Accelerator | FieldError | None:
    if Number(0).stands_in(gpus):
        return None
    if offers.default_accelerator is not None:
        return offers.accelerators[offers.default_accelerator]
    if gpus is None or not offers.accelerators:
        return None
    if len(offers.accelerators) == 1:
        return next(iter(offers.accelerators.values()))
    return FieldError(ACCELERATOR, wording.accelerator_missing(offers.accelerators))
