"""Hostile and broken bodies of start requests, as Python objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from kubespawner import KubeSpawner

from tests.hub.option_sets import option_sets

HTML = "<img src=x onerror=alert(1)>\"'&</option></select></form><script>alert(2)</script>"
TEXTS = (
    HTML,
    "{{ 7*7 }}{% print(1) %}",
    "{username}{unescaped_servername}",
    "%s%n%(x)s",
    "\x00",
    "\ud800",
    "\udfff\ud800",
    "\u202e\u2066evil\u2069",
    "\u200b\ufeff",
    "a\r\nSet-Cookie: x=1",
    "K\u0130\u0131\u017f\uff34\uff14",
    "lab:1 --privileged",
    "ghcr.io/lab/x:1\n",
    "ghcr.io/lab/../../x:1",
    "../../etc/passwd",
    "$(reboot)",
    "none",
    "null",
    "",
    " ",
)
QUANTITIES = (
    "1e400", "-1Gi", "1e-400", "9" * 400, "0x10Gi", "1Gi1Gi", "NaN", "Infinity", "+1Gi", "1_0Gi",
    "1 Gi", "\u0661Gi", ".Gi", "1Ei", "0", "-0", "1EI", "1e1e1", "1E3Gi",
)  # fmt: skip
NUMBERS = (
    -1, 10**400, -(10**400), 2**63, 1e308, float("inf"), float("-inf"), float("nan"), 5e-324,
    True, False, 0.1 + 0.2, -0.0,
)  # fmt: skip
TRAITS = tuple(sorted(KubeSpawner.class_trait_names()))

Make = Callable[[Random], object]


def bodies(seed: int) -> Iterator[object]:
    """Yield bodies forever: valid sets of options, most of them tampered with."""
    random = Random(seed)
    for options in option_sets(seed):
        body: object = dict(options)
        for _ in range(random.choice((0, 1, 1, 1, 2, 4))):
            body = random.choice(_TAMPER)(random, body)
        yield body


def _value(random: Random) -> object:
    return random.choice(_VALUES)(random)


def _nested(random: Random) -> object:
    value: object = random.choice(TEXTS)
    for _ in range(random.choice((1, 3, 30, 300))):
        value = [value] if random.random() < 0.5 else {random.choice(TEXTS): value}
    return value


_VALUES: tuple[Make, ...] = (
    lambda random: random.choice(TEXTS),
    lambda random: random.choice(QUANTITIES),
    lambda random: random.choice(NUMBERS),
    lambda random: "".join(chr(random.randrange(0x110000)) for _ in range(random.randrange(50))),
    lambda random: random.choice(TEXTS) * random.choice((1, 10, 1000)),
    lambda random: [random.choice(TEXTS)] * random.choice((0, 1, 500)),
    lambda random: {str(number): number for number in range(random.choice((0, 1, 500)))},
    _nested,
)


def _replace(random: Random, body: object) -> object:
    if not isinstance(body, dict):
        return body
    name = random.choice(["accelerator", "gpus", "image", "memory", "cpu"])
    return {**body, name: _value(random)}


def _add(random: Random, body: object) -> object:
    if not isinstance(body, dict):
        return body
    return {**body, random.choice((*TRAITS, *TEXTS, "gpus--t4", "profile")): _value(random)}


def _wrap(random: Random, body: object) -> object:
    return random.choice(([body], {"user_options": body}, {"profile": body}, {"": body}))


def _drop(random: Random, body: object) -> object:
    del body
    return _value(random)


_TAMPER: tuple[Callable[[Random, object], object], ...] = (
    _replace, _replace, _replace, _add, _add, _wrap, _drop
)  # fmt: skip
