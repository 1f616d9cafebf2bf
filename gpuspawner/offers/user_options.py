"""Reads the options of a form, query or REST request: into a request, or into errors at fields."""

import re
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import convert
from msgspec.structs import asdict

from gpuspawner.kube.quoting import quote
from gpuspawner.language import sentences
from gpuspawner.offers import wording
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.options import ACCELERATOR, GPUS, NAMES, OPTIONS, FieldError, Number, Written
from gpuspawner.offers.shapes import same_key
from gpuspawner.offers.types import Accelerator

OF = "--"
"""In a form, `gpus--a100` is the option `gpus` if the accelerator `a100` is chosen."""

UNLISTED = "unlisted_"
"""In a form, `unlisted_image` is the text field beside the list `image`, and takes precedence."""

_WHOLE = re.compile(r"[0-9]{1,9}")
_DECIMAL = re.compile(r"[0-9]{1,9}\.[0-9]{1,3}")
_NUMBERS = frozenset(option.name for option in OPTIONS if option.type == "number")


class GPURequest(msgspec.Struct, frozen=True):
    """A request of a user, in which every value is offered. None: users can't choose it.

    Attributes:
        accelerator: Key of an accelerator; None for a server without a GPU.
        gpus: Number of GPUs; 0 without an accelerator, and only then.
        image: Key of an image, or the reference of an image that isn't listed.
        memory: Text of an offered memory size.
        cpu: Cores.
    """

    accelerator: str | None = None
    gpus: int = 0
    image: str | None = None
    memory: str | None = None
    cpu: int | float | None = None


class Gone(msgspec.Struct, frozen=True):
    """An earlier choice that is no longer offered.

    Attributes:
        field: Name of the option.
        value: A short, harmless quote of the choice, not yet escaped for HTML.
    """

    field: str
    value: str


def from_form(form: Mapping[str, Sequence[object]]) -> dict[str, object]:
    """Convert the fields of a form or query, as JupyterHub provides them, to options for `parse`.

    Only forms and queries send numbers as text. A field such as `gpus--a100` counts if its
    accelerator is the chosen one. JupyterHub's own `_xsrf` is left out.
    """
    fields = {name: _single(values) for name, values in form.items() if name != "_xsrf"}
    accelerator = fields.get(ACCELERATOR)
    raw: dict[str, object] = {}
    for name, value in fields.items():
        option, of, key = name.partition(OF)
        if not of or option not in NAMES:
            raw.setdefault(name, _number(name, value))
        elif isinstance(accelerator, str) and same_key(key) == same_key(accelerator):
            raw[option] = _number(option, value)
    for option in (it.name for it in OPTIONS):
        written = raw.pop(f"{UNLISTED}{option}", "")
        if isinstance(written, str):  # as in the form's script, spaces alone are nothing
            written = written.strip()
        if written != "":
            raw[option] = written
    return {name: None if value == "" else value for name, value in raw.items()}


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


def fall_back(raw: object, offers: Offers) -> tuple[GPURequest, tuple[Gone, ...]]:
    """Read options without those that aren't offered, so that a form keeps the other choices.

    The second are those that are dropped.
    """
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


def user_options(request: GPURequest) -> dict[str, Written]:
    """Return a request as JupyterHub stores it; `parse` reads it as the same request."""
    return asdict(request)


def _unknown(raw: Mapping[object, object]) -> tuple[FieldError, ...]:
    unknown = [name for name in raw if name not in NAMES]
    return (FieldError("", wording.unknown_options(unknown, NAMES)),) if unknown else ()


def _accelerator(raw: Mapping[object, object], offers: Offers) -> Accelerator | FieldError | None:
    if ACCELERATOR not in raw:
        return _unnamed(raw.get(GPUS.name), offers)
    given = raw[ACCELERATOR]
    if given is None:
        return None
    keys = offers.accelerators
    if not isinstance(given, str):
        problem = wording.not_text(given)
    elif found := offers.accelerator(given):
        return found
    else:
        problem = wording.not_offered(given, keys)
    return FieldError(ACCELERATOR, sentences(problem, wording.choose_accelerator(keys)))


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


def _single(values: Sequence[object]) -> object:
    return values[0] if len(values) == 1 else list(values)


def _number(name: str, value: object) -> object:
    if name not in _NUMBERS or not isinstance(value, str):
        return value
    if _WHOLE.fullmatch(value):
        return int(value)
    return float(value) if _DECIMAL.fullmatch(value) else value
