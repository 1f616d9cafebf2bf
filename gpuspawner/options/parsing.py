"""Options as they came, to a request or to errors addressed to fields."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec import convert

from gpuspawner.offers import Accelerator, Offers
from gpuspawner.options.declared import ACCELERATOR, GPUS, NAMES, OPTIONS
from gpuspawner.options.request import FieldError, GPURequest
from gpuspawner.options.spelling import Number
from gpuspawner.quoting import did_you_mean, listing, quote

_MOST_UNKNOWN = 3


@dataclass(frozen=True, slots=True)
class Gone:
    """A choice of an earlier time that is not on offer any more.

    Attributes:
        field: Name of the option.
        value: What was chosen, as a short harmless quote. Not yet escaped for HTML.
    """

    field: str
    value: str


def parse(raw: object, offers: Offers) -> GPURequest | tuple[FieldError, ...]:
    """Read options as they came: a request, or every reason why they are none.

    Options left out (or null) are the configured defaults. A null accelerator asks for a server
    without a GPU.
    """
    if not isinstance(raw, Mapping):
        text = f"{quote(raw)} is not a set of options; send an object with {_and(NAMES)}"
        return (FieldError("", text),)
    unknown = _unknown(raw)
    accelerator = _accelerator(raw, offers)
    if isinstance(accelerator, FieldError):
        return (*unknown, accelerator)
    choices = offers.choices(accelerator)
    company = f"with {accelerator.display_name}" if accelerator else "without a GPU model"
    found = {option.name: option.read(raw.get(option.name), choices, company) for option in OPTIONS}
    errors = *unknown, *(value for value in found.values() if isinstance(value, FieldError))
    if errors:
        return errors
    return convert({ACCELERATOR: accelerator and accelerator.key, **found}, GPURequest)


def keep(raw: object, offers: Offers) -> GPURequest:
    """The request that is left of options once all that is not on offer is dropped from them.

    For a form that is shown again: a person's other choices stay.
    """
    return fall_back(raw, offers)[0]


def fall_back(raw: object, offers: Offers) -> tuple[GPURequest, tuple[Gone, ...]]:
    """The same, and what was dropped: for options that were granted once and stored."""
    kept = dict(raw) if isinstance(raw, Mapping) else {}
    kept = {name: value for name, value in kept.items() if name in NAMES}
    gone: list[Gone] = []
    while not isinstance(read := parse(kept, offers), GPURequest):
        wrong = [error.field for error in read if error.field in kept]
        # Where the accelerator itself is missing nothing can be dropped; all starts from defaults.
        dropped = wrong or list(kept)
        gone += [Gone(name, quote(kept[name])) for name in dropped]
        kept = {name: value for name, value in kept.items() if name not in dropped}
    return read, tuple(gone)


def _unknown(raw: Mapping[object, object]) -> tuple[FieldError, ...]:
    unknown = [name for name in raw if name not in NAMES]
    if not unknown:
        return ()
    named = ", ".join(quote(name) for name in unknown[:_MOST_UNKNOWN])
    more = f" and {len(unknown) - _MOST_UNKNOWN} more" if len(unknown) > _MOST_UNKNOWN else ""
    hint = did_you_mean(unknown[0], NAMES) if isinstance(unknown[0], str) else ""
    text = f"there is no option {named}{more}{hint}; there are {_and(NAMES)}"
    return (FieldError("", text),)


def _accelerator(raw: Mapping[object, object], offers: Offers) -> Accelerator | FieldError | None:
    """The accelerator chosen, by its name or by what else was said."""
    if ACCELERATOR not in raw:
        return _unnamed(raw.get(GPUS.name), offers)
    given = raw[ACCELERATOR]
    if given is None:
        return None
    found = offers.accelerator(given) if isinstance(given, str) else None
    if found is not None:
        return found
    if not isinstance(given, str):
        problem = f"{quote(given)} is not text"
    else:
        problem = f"{quote(given)} is not on offer{did_you_mean(given, offers.accelerators)}"
    return FieldError(ACCELERATOR, f"{problem}; choose {_accelerators(offers)}")


def _unnamed(gpus: object, offers: Offers) -> Accelerator | FieldError | None:
    if Number(0).stands_in(gpus):
        return None
    if offers.default_accelerator is not None:
        return offers.accelerators[offers.default_accelerator]
    if gpus is None or not offers.accelerators:
        return None
    if len(offers.accelerators) == 1:
        return next(iter(offers.accelerators.values()))
    return FieldError(ACCELERATOR, f"choose which one: {_accelerators(offers)}")


def _accelerators(offers: Offers) -> str:
    return listing((*offers.accelerators, "null for none"))


def _and(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}"
