"""The bodies of `bodies` as bytes, as good and broken programs write them."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import cache
from random import Random

from tests.fuzz.bodies import bodies

LARGEST = 100 * 1024 * 1024
"""The largest body that the hub reads, in bytes (tornado 6.6, iostream.py: max_buffer_size)."""

# Only one body in so many is large, because it takes a second to read instead of a millisecond.
_LARGE_OF = 2000
_SMALLEST_LARGE = 64 * 1024
# One body in so many is nested deeply, half of them about as deeply as this Python can read.
_DEEP_OF = 50
_DEEPEST = 20_000

_SPACES = (" ", "\n", "\r\n\t", "\v", "\f", "\x00", "\x85", "\u00a0", "\u2028", "\u3000", "\ufeff")
_ENCODINGS = ("utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1", "utf-7", "cp037")
_NO_UTF8 = (b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe2\x82")

Write = Callable[[Random, str], bytes]


def wire(seed: int) -> Iterator[bytes]:
    """Yield bodies forever, each as bytes."""
    random = Random(seed)
    for body in bodies(seed):
        text = json.dumps(body, ensure_ascii=random.random() < 0.5)
        if random.randrange(_DEEP_OF) == 0:
            text = _deep(random, text)
        if random.randrange(_LARGE_OF) == 0:
            text = _large(random, text)
        yield random.choice(_WRITERS)(random, text)


def _deep(random: Random, text: str) -> str:
    """Nest the text; the limits of Python 3.11 to 3.13 lie between 960 and 10,000 levels."""
    near_the_limit = _limit() + random.randrange(-30, 10)
    depth = random.choice((near_the_limit, round(_DEEPEST ** random.uniform(0.6, 1))))
    match random.randrange(4):
        case 0:
            return "[" * depth + text + "]" * depth
        case 1:
            return '{"accelerator":' * depth + text + "}" * depth
        case 2:
            return f'{{"user_options":{"[" * depth}{text}{"]" * depth}}}'
        case _:
            return "[" * depth  # never closed


@cache
def _limit() -> int:
    """Return how many levels this Python's json reads at the current stack depth."""

    def is_read(depth: int) -> bool:
        try:
            json.loads("[" * depth + "]" * depth)
        except RecursionError:
            return False
        return True

    return bisect_left(range(_DEEPEST), True, key=lambda depth: not is_read(depth)) - 1


def _large(random: Random, text: str) -> str:
    size: int = round(_SMALLEST_LARGE * (LARGEST / _SMALLEST_LARGE) ** random.random())
    match random.randrange(4):
        case 0:
            return " " * (size - len(text)) + text
        case 1:
            return json.dumps({"image": "x" * size})
        case 2:
            return f"[{'0,' * (size // 2)}0]"
        case _:
            return f'{{"gpus": {"9" * size}}}'


def _plain(_: Random, text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _spaced(random: Random, text: str) -> bytes:
    before, after = (random.choice(_SPACES) * random.randrange(3) for _ in range(2))
    return _plain(random, random.choice((text, "")).join((before, after)))


def _encoded(random: Random, text: str) -> bytes:
    return text.encode(random.choice(_ENCODINGS), "replace")


def _broken(random: Random, text: str) -> bytes:
    whole = _plain(random, text)
    at = random.randrange(len(whole) + 1)
    return whole[:at] + random.choice(_NO_UTF8) + whole[at:]


def _cut(random: Random, text: str) -> bytes:
    whole = _plain(random, text)
    return whole[: random.randrange(len(whole) + 1)]


_WRITERS: tuple[Write, ...] = (*[_plain] * 12, _spaced, _encoded, _broken, _cut)
