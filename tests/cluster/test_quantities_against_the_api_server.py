"""`parse_quantity` accepts the same quantities as the API server, with the same values."""

from __future__ import annotations

import random
import re
import secrets
from fractions import Fraction

from gpuspawner.kube.quantity import QuantityError, parse_quantity
from localcluster import LocalCluster
from tests.scheduling.live.api import Api, RefusedError

# Left out: values from 1000E on, whose exponent the API server loses (it answers "1000E" with "1"),
# and exponents over 1000. `parse_quantity` refuses these on purpose, because an API server has
# taken minutes for one.
LOSSY = 1000 * 10**18
LONG_EXPONENT = re.compile(r"[eE][+-]?[0-9]{3}")
WORDS = """
    0 1 -1 +1 00 007 -0 +0 . +. -. 1. .5 -.5 1.5 1.5. 1..5 1e3 1E3 1e+3 1e-3 1E 1e e3 1e1.5
    1e3Ki 1K 1k 1Ki 1kI 1KI 1ki 1m 1M 1Mi 1mi 1MI 1g 1G 1Gi 1T 1Ti 1P 1Pi 1Ei 1ei 1Zi 1Z 1Y 1n
    1u 1µ 1ni 1ui .Ki .Mi .Gi .Ti .Pi .Ei .n .u .m .k .E .e1 .e-9 .e-10 .e10 Ki m n E e1 0x10
    1_000 1,000 １ ٣ NaN Inf inf nan 1e-1000 0.1n 0.5n 1.5n 0.0000000001 0.0000000015 1e-9 1e-10
    1.1e-9 -1e-10 -0.5n -1.5n 9223372036854775807 9223372036854775808 -9223372036854775808
    -9223372036854775809 9223372036854775807Ki 8Ei 7.9Ei 8191Pi 8192Pi 9Ei 16Ei 1000Ei -8Ei -9Ei
    9.3E 10E 0.1Ki 0.5Ki 1.0001Ki 1.1Mi 0.000000001Gi 0.0000000001Gi 100m 0.1m 1e3m 5E5 1EE5 1e+
    1e- 1e+-3 +-1 -+1 --1 1- 1+ 1+1 1-1 1i 1Kii 1KKi iK 1e0 1e00 1e-0 1e+00003 12e6 12E6 12M
    12Mi 123456789.123456789 123456789.1234567891 1.23456789012345678901234567890
    0.000000000000000000000000000001 5GiB 5GB 5Gb 1d 1h 1s 1da 1EI 1eI 1Eie 1e3e 1m3 1n3 1Ki3
    1k3 1k+3 1m-3 é
"""
BY_HAND = [
    *WORDS.split(),
    " 1",
    "1 ",
    "1\u00a0",
    "\u30001",
    "",
    "1 Gi",
    "\t1",
    "1\n",
    "1\x00",
    '1"',
    "1\\",
]

SUFFIX_WORDS = "n u m k M G T P Ki Mi Gi Ti Pi Ei e3 E3 e-3 e10 E+2 e-12 e18 e-18 K ki B i"
SUFFIXES = [*SUFFIX_WORDS.split(), "", ""]


def drawn(draw: random.Random) -> str:
    digits = "".join(draw.choices("0123456789", k=draw.choice([0, 1, 1, 2, 3, 5, 10])))
    part = "".join(draw.choices("0123456789", k=draw.choice([0, 1, 2, 3, 9, 10, 12, 20])))
    text = draw.choice(["", "", "", "-", "+"]) + digits
    text += ("." + part if draw.random() < 0.4 else "") + draw.choice(SUFFIXES)
    if draw.random() < 0.15:
        place = draw.randrange(len(text) + 1)
        text = text[:place] + draw.choice("0.+-eKimnu") + text[place:]
    return text


async def answered(api: Api, text: str) -> Fraction | None:
    """Return the API server's value of a text, None if it refuses the text.

    It uses a LimitRange, which accepts negative quantities too, in a dry run, which stores nothing.
    """
    limits = [{"type": "Container", "max": {"memory": text}}]
    body = {"metadata": {"generateName": "q-"}, "spec": {"limits": limits}}
    place = f"{api.server}/api/v1/namespaces/default/limitranges"
    try:
        made = await api.request("POST", place, body, dryRun="All")
    except RefusedError as refused:
        if "uantit" not in refused.message:
            raise
        return None
    return parse_quantity(made["spec"]["limits"][0]["max"]["memory"])


def parsed(text: str) -> Fraction | None:
    """Return our value, rounded up to thousandths as the API server does by default."""
    try:
        value = parse_quantity(text) * 1000
    except QuantityError:
        return None
    size = -(-abs(value.numerator) // value.denominator)
    return Fraction(size if value >= 0 else -size, 1000)


async def test_every_text_has_the_api_servers_value(
    bare_cluster: LocalCluster,
) -> None:
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    draw = random.Random(seed)
    texts = [*BY_HAND, *(drawn(draw) for _ in range(400))]
    texts = [
        text for text in texts if not LONG_EXPONENT.search(text) and abs(parsed(text) or 0) < LOSSY
    ]

    async with Api.connect(bare_cluster.url, bare_cluster.token, str(bare_cluster.ca)) as api:
        theirs = {text: await answered(api, text) for text in texts}

    assert theirs == {text: parsed(text) for text in theirs}
