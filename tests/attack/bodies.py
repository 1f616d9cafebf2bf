"""Bodies of starts that the hub must refuse, each of a kind that once did harm."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

# Around the recursion limits of Python 3.11, 3.12 and 3.13, less the hub's own stack.
_DEPTHS = (300, *range(930, 1000), *range(1460, 1500), *range(9970, 10_000), 100_000)
_CHOICE = '{"image":"no such image"}'


def hostile_bodies(seed: int) -> Iterator[bytes]:
    """Yield bodies forever: deep, in other encodings, with unusual white space, and huge."""
    random = Random(seed)
    while True:
        depth = random.choice(_DEPTHS)
        yield random.choice(
            (
                b'{"image":' + b"[" * depth + b"]" * depth + b"}",
                b'{"image":' * depth + b"0" + b"}" * depth,
                b"\x0b" + _CHOICE.encode() + b"\x0c",
                _CHOICE.encode("utf-16"),
                b'{"image":"\xff\xfe"}',
                b'{"image":"' + b"x" * random.randrange(1_000_000) + b'"}',
                b'{"image":[' + b"0," * random.randrange(200_000) + b"0]}",
            )
        )
