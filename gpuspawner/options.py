"""What a person chose, from form, query or REST, read into a `GPURequest`.

Each option is declared once, in `OPTIONS`; form, check and stored options all follow from it. What
arrives here is hostile until it has been read: every value that gets through is one of the
administrator's, never the sender's.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Generic, TypeAlias, TypeVar

from msgspec import convert

from gpuspawner.kube.quantity import QuantityError, parse_quantity
from gpuspawner.offers import Accelerator, Choices, Image, Memory, Offers
from gpuspawner.offers.entries import same_key
from gpuspawner.quoting import LONGEST, did_you_mean, listing, quote

T = TypeVar("T")
Written: TypeAlias = str | int | float | None
"""A choice as it stands in `user_options`."""

ACCELERATOR = "accelerator"
OF = "--"
"""In a form, `gpus--a100` is the option `gpus` where the accelerator `a100` is chosen."""

_WHOLE = re.compile(r"[0-9]{1,9}")
_DECIMAL = re.compile(r"[0-9]{1,9}\.[0-9]{1,3}")
_MOST_UNKNOWN = 3


@dataclass(frozen=True, slots=True)
class GPURequest:
    """What a person asks for, every part of it on offer.

    Attributes:
        accelerator: Key of an accelerator; None: a server without a GPU.
        gpus: How many GPUs; 0 exactly where there is no accelerator.
        image: Key of an image; None where the image is not a choice.
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


@dataclass(frozen=True, slots=True)
class Option(Generic[T]):
    """One choice among those that come with an accelerator.

    Attributes:
        name: Its name in form, query, REST body and `user_options`.
        kind: Which values a REST body may have for it, in words.
        choices: What there is to choose from.
        default: What is taken when it is left out.
        write: A choice as it stands in `user_options`.
        means: Whether a value sent stands for a choice; values of another kind never do.
    """

    name: str
    kind: str
    choices: Callable[[Choices], tuple[T, ...]]
    default: Callable[[Choices], T | None]
    write: Callable[[T], Written]
    means: Callable[[object, T], bool]

    def read(self, given: object, choices: Choices, company: str) -> Written | FieldError:
        """The choice that a value stands for, as written, or why there is none.

        Args:
            given: What was sent; None stands for left out.
            choices: What can be chosen.
            company: With what, for the sentence: `with NVIDIA A100`.
        """
        if given is None:
            taken = self.default(choices)
            return None if taken is None else self.write(taken)
        offered = self.choices(choices)
        for choice in offered:
            if self.means(given, choice):
                return self.write(choice)
        if not offered:
            text = f"there is no choice of {self.name} {company}; leave it out"
            return FieldError(self.name, text)
        allowed = listing(str(self.write(choice)) for choice in offered)
        is_kind = isinstance(given, str) == (self.kind == "text") and _is_scalar(given)
        problem = f"not on offer {company}" if is_kind else f"not {self.kind}"
        return FieldError(self.name, f"{quote(given)} is {problem}; choose {allowed}")


def _cores(millicores: int) -> Written:
    return millicores / 1000 if millicores % 1000 else millicores // 1000


def _is_scalar(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _is_number(given: object, number: int, scale: int = 1) -> bool:
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    return is_number and given == number / scale


def _is_memory(given: object, memory: Memory) -> bool:
    if not isinstance(given, str) or len(given) > LONGEST:
        return False
    try:
        return parse_quantity(given) == memory.bytes
    except QuantityError:
        return False


def _is_image(given: object, image: Image) -> bool:
    return isinstance(given, str) and same_key(given) == same_key(image.key)


GPUS: Option[int] = Option(
    name="gpus",
    kind="a number",
    choices=lambda choices: choices.counts,
    default=lambda choices: choices.default.gpus,
    write=lambda count: count,
    means=_is_number,
)
IMAGE: Option[Image] = Option(
    name="image",
    kind="text",
    choices=lambda choices: choices.images,
    default=lambda choices: next(
        (image for image in choices.images if image.key == choices.default.image), None
    ),
    write=lambda image: image.key,
    means=_is_image,
)
MEMORY: Option[Memory] = Option(
    name="memory",
    kind="text",
    choices=lambda choices: choices.memory,
    default=lambda choices: choices.default.memory,
    write=lambda memory: memory.text,
    means=_is_memory,
)
CPU: Option[int] = Option(
    name="cpu",
    kind="a number",
    choices=lambda choices: choices.cpu,
    default=lambda choices: choices.default.cpu,
    write=_cores,
    means=lambda given, millicores: _is_number(given, millicores, 1000),
)

OPTIONS: tuple[Option[int] | Option[Image] | Option[Memory], ...] = (GPUS, IMAGE, MEMORY, CPU)
"""All options but the accelerator, on which they depend."""

NAMES = (ACCELERATOR, *(option.name for option in OPTIONS))


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
    kept = dict(raw) if isinstance(raw, Mapping) else {}
    kept = {name: value for name, value in kept.items() if name in NAMES}
    while not isinstance(read := parse(kept, offers), GPURequest):
        wrong = {error.field for error in read}
        left = {name: value for name, value in kept.items() if name not in wrong}
        # Where the accelerator itself is missing nothing can be dropped; all starts from defaults.
        kept = left if len(left) < len(kept) else {}
    return read


def user_options(request: GPURequest) -> dict[str, Written]:
    """A request as JupyterHub stores it; read again, it is the same request."""
    return asdict(request)


def from_form(form: Mapping[str, Sequence[object]]) -> dict[str, object]:
    """Options as `parse` reads them, from the fields of a form or query as JupyterHub gives them.

    Only here numbers are texts. A field such as `gpus--a100` counts where its accelerator is the
    one chosen; JupyterHub's own `_xsrf` is left out.
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
    return {name: None if value == "" else value for name, value in raw.items()}


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
    if _is_number(gpus, 0):
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


def _single(values: Sequence[object]) -> object:
    return values[0] if len(values) == 1 else list(values)


def _number(name: str, value: object) -> object:
    if name not in (GPUS.name, CPU.name) or not isinstance(value, str):
        return value
    if _WHOLE.fullmatch(value):
        return int(value)
    return float(value) if _DECIMAL.fullmatch(value) else value
