"""Reads plain data, as YAML gives it: each function returns a value or raises a `FleetError`."""

import re

from localcluster.errors import LocalClusterError

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_QUALIFIED_NAME = re.compile(
    r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
_QUANTITY = re.compile(r"\d+(\.\d+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?")


class FleetError(LocalClusterError):
    """An invalid fleet; the text names the field and its allowed values."""


def fields(
    where: str, data: object, *, required: tuple[str, ...] = (), optional: tuple[str, ...] = ()
) -> dict[str, object]:
    """Return a mapping that has the required fields and no unknown ones."""
    found = mapping(where, data)
    allowed = required + optional
    for field in found:
        if field not in allowed:
            raise FleetError(f"{where}.{field}: unknown; it may have {', '.join(allowed)}")
    for field in required:
        if field not in found:
            raise FleetError(f"{where}.{field}: missing")
    return found


def mapping(where: str, data: object) -> dict[str, object]:
    """Return a mapping with text as keys."""
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise FleetError(f"{where}: {data!r} is not a mapping with text as keys")
    return data


def items(where: str, data: object) -> list[object]:
    """Return a list."""
    if not isinstance(data, list):
        raise FleetError(f"{where}: {data!r} is not a list")
    return data


def text(where: str, data: object) -> str:
    """Return a text."""
    if not isinstance(data, str):
        raise FleetError(f"{where}: {data!r} is not text")
    return data


def one_of(where: str, data: object, allowed: tuple[str, ...]) -> str:
    """Return one of these texts."""
    if not isinstance(data, str) or data not in allowed:
        raise FleetError(f"{where}: {data!r} is not one of {', '.join(allowed)}")
    return data


def name(where: str, data: object) -> str:
    """Return a name for nodes or pools."""
    if not isinstance(data, str) or not _NAME.fullmatch(data):
        raise FleetError(f"{where}: {data!r} is not lower case letters, digits and dashes")
    return data


def whole_number(where: str, data: object, largest: int) -> int:
    """Return a whole number from 0 to the largest."""
    if not isinstance(data, int) or isinstance(data, bool) or not 0 <= data <= largest:
        raise FleetError(f"{where}: {data!r} is not a whole number from 0 to {largest}")
    return data


def number(where: str, data: object, what: str) -> float:
    """Return a number that isn't negative; ``what`` names it in the error."""
    is_number = isinstance(data, int | float) and not isinstance(data, bool)
    if not is_number or not 0 <= data < float("inf"):  # type: ignore[operator]
        raise FleetError(f"{where}: {data!r} is not {what}")
    return float(data)  # type: ignore[arg-type]


def seconds(where: str, data: object) -> float:
    """Return a duration in seconds."""
    return number(where, data, "a number of seconds, 0 or more")


def qualified_name(where: str, data: object) -> str:
    """Return the name of a label, a taint or a resource."""
    if not _QUALIFIED_NAME.fullmatch(text(where, data)):
        raise FleetError(f"{where}: {data!r} is not a name such as example.com/name")
    return str(data)


def labels(where: str, data: object) -> dict[str, str]:
    """Return labels."""
    found: dict[str, str] = {}
    for key, value in mapping(where, data).items():
        qualified_name(where, key)
        found[key] = label_value(f"{where}.{key}", value, "a label value")
    return found


def label_value(where: str, data: object, what: str) -> str:
    """Return the value of a label or a taint."""
    if not isinstance(data, str) or not _LABEL_VALUE.fullmatch(data):
        raise FleetError(f"{where}: {data!r} is not {what} (quote true and 1)")
    return data


def quantities(where: str, data: object) -> dict[str, str]:
    """Return quantities of resources."""
    found: dict[str, str] = {}
    for resource, quantity in mapping(where, data).items():
        qualified_name(where, resource)
        # YAML reads an unquoted 8 as a number; it means the same.
        is_number = isinstance(quantity, int | float) and not isinstance(quantity, bool)
        written = str(quantity) if is_number else quantity
        if not isinstance(written, str) or not _QUANTITY.fullmatch(written):
            raise FleetError(
                f"{where}.{resource}: {quantity!r} is not a quantity such as 8, 500m or 32Gi"
            )
        found[resource] = written
    return found
