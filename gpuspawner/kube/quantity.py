"""Parses and formats Kubernetes' quantities, exactly.

The rules are those of apimachinery's `ParseQuantity` (pkg/api/resource/quantity.go, v0.36.2), with
its quirks: "." and "Ki" are zero, parts finer than a billionth are rounded away from zero, and
binary quantities stop at 2**63-1. White space around a quantity is trimmed, as in JSON.
"""

import re
from fractions import Fraction
from functools import lru_cache

NANOS = 10**9
"""The number of billionths in one unit. Quantities have no finer parts."""

INT64_MAX = 2**63 - 1

_QUANTITY = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?P<point>\.(?P<part>[0-9]*))?"
    r"(?P<suffix>[eEinumkKMGTP]*[+-]?[0-9]*)"
)
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)")
_DECIMAL = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}

# Go trims this white space before it decodes JSON's escapes, so control characters aren't in it.
_SPACE = (
    " \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)

# No cluster has 10**1000 of anything. Larger numbers would only cost time and memory.
_LONGEST_TEXT = 1000
_LARGEST_EXPONENT = 1000


class QuantityError(ValueError):
    """A text isn't a quantity, or its number is too large."""


def parse_quantity(text: str) -> Fraction:
    """Return the exact value of a quantity such as "1500m", "16Gi" or "1e3".

    Raises:
        QuantityError: the API server would refuse the text.
    """
    return Fraction(parse_nanos(text), NANOS)


def millis_of(nanos: int) -> int:
    """Round billionths up to thousandths; a QuantityError means more than 64 bits."""
    return _int64(_round_away(nanos, 10**6))


def whole_of(nanos: int) -> int:
    """Round billionths up to whole units; a QuantityError means more than 64 bits."""
    return _int64(_round_away(nanos, NANOS))


@lru_cache(maxsize=16384)
def parse_nanos(text: str) -> int:
    """Return the value of a quantity in billionths; no quantity has finer parts.

    Raises:
        QuantityError: the API server would refuse the text.
    """
    text = text.strip(_SPACE)
    match = _QUANTITY.fullmatch(text) if 0 < len(text) <= _LONGEST_TEXT else None
    if match is None:
        raise QuantityError(f"{text[:40]!r} is not a quantity such as 500m, 2, 16Gi or 1e3")
    whole_part, part, suffix = match["whole"], match["part"] or "", match["suffix"]
    digits = whole_part + part
    if suffix in _BINARY:
        exponent = _BINARY[suffix]
        # For a text without digits, only the int64 path of ParseQuantity returns zero.
        if not digits and exponent > _BINARY["Ti"]:
            raise QuantityError(f"{text[:40]!r} has no digit")
        nanos = min(
            _round_away(int(digits or "0") * 2**exponent * NANOS, 10 ** len(part)),
            INT64_MAX * NANOS,
        )
    else:
        exponent = _decimal_exponent(text, suffix)
        if not digits and exponent < -9:
            raise QuantityError(f"{text[:40]!r} has no digit")
        nanos = _scaled(int(digits or "0"), exponent - len(part) + 9)
    return -nanos if match["sign"] == "-" else nanos


def format_bytes(count: int) -> str:
    """Format bytes for people, rounded, in the largest binary unit: "16Gi", "15.5Gi", "512Mi"."""
    for suffix, exponent in reversed(_BINARY.items()):
        unit = 2**exponent
        if abs(count) >= unit:
            return f"{round(count / unit, 1):g}{suffix}"
    return str(count)


def exact_bytes(count: int) -> str:
    """Format bytes exactly, in the largest binary unit without a fraction: "1536Mi"."""
    for suffix, exponent in reversed(_BINARY.items()):
        if count and count % 2**exponent == 0:
            return f"{count // 2**exponent}{suffix}"
    return str(count)


def _decimal_exponent(text: str, suffix: str) -> int:
    if suffix in _DECIMAL:
        return _DECIMAL[suffix]
    match = _EXPONENT.fullmatch(suffix)
    if match is None:
        raise QuantityError(f"{text[:40]!r} has an unknown suffix: {suffix[:10]!r}")
    exponent = int(match[1])
    if exponent > _LARGEST_EXPONENT:
        raise QuantityError(f"{text[:40]!r} is beyond all that a cluster can hold")
    return exponent


def _scaled(number: int, exponent: int) -> int:
    if exponent >= 0:
        return int(number * 10**exponent)
    if number == 0 or -exponent > 2 * _LONGEST_TEXT:
        return min(number, 1)  # rounds away from zero, without a huge power
    return _round_away(number, 10**-exponent)


def _round_away(number: int, divisor: int) -> int:
    return -(-number // divisor) if number >= 0 else number // divisor


def _int64(number: int) -> int:
    if abs(number) > INT64_MAX:
        raise QuantityError("the quantity is beyond 64 bits")
    return number
