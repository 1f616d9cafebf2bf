"""Valid and invalid option sets that users and scripts might send, from a seed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from gpuspawner.offers.offers import Offers
from gpuspawner.offers.options import CPU, GPUS, IMAGE, Option
from localcluster import Fleet, NodeGroup

GPU = "nvidia.com/gpu"

OptionSet = dict[str, object]


def _group(name: str, count: int, gpus: int, memory: str = "64Gi") -> NodeGroup:
    amounts = {"cpu": "16", "memory": memory, "pods": "110", GPU: str(gpus)}
    return NodeGroup(name, count, amounts, labels={"gpu": name})


FLEET = Fleet(
    (
        _group("t4", 2, 2),
        _group("a100", 1, 4, memory="24Gi"),
        _group("busy", 1, 1),
        _group("away", 1, 1),
        NodeGroup("plain", 1, {"cpu": "4", "memory": "12Gi", "pods": "110"}),
    )
)

ACCELERATORS = {
    "t4": {"counts": [1, 2, 4], "node_selector": {"gpu": "t4"}},
    "a100": {"counts": [1, 4], "node_selector": {"gpu": "a100"}, "memory_choices": ["8Gi", "32Gi"]},
    "busy": {"node_selector": {"gpu": "busy"}},
    "away": {"node_selector": {"gpu": "away"}},
    "absent": {"node_selector": {"gpu": "absent"}},
    "grows": {"node_selector": {"gpu": "grows"}, "scale_up": {"max_nodes": 1, "minutes": 2}},
}
IMAGES = {
    "lab": {"image": "lab:1"},
    "torch": {"image": "torch:1", "accelerators": ["a100", "t4"]},
}
OFFERS: Mapping[str, object] = {
    "accelerators": ACCELERATORS,
    "default_accelerator": "",
    "images": IMAGES,
    "memory_choices": ["1Gi", "16Gi", "100Gi"],
    "cpu_choices": [1, 8, 32],
    "unlisted_image": {"validation_regex": "ghcr.io/lab/[a-z]+:[0-9]"},
    "unlisted_memory": {"min": "2Gi", "max": "4Gi"},
}

_VALUES: Mapping[str, tuple[object, ...]] = {
    "accelerator": (*ACCELERATORS, "T4", None, None, "h100", "<b>"),
    "gpus": (0, 1, 1, 2, 4, 3, -1, 1.5, 10**20),
    "image": (*IMAGES, "LAB", "ghcr.io/lab/x:1", "evil.io/x:1", "ghcr.io/lab/x:1;", None),
    "memory": (
        "1Gi",
        "1024Mi",
        "16Gi",
        "8Gi",
        "32Gi",
        "100Gi",
        "3Gi",
        "5Gi",
        "-1Gi",
        "1e400",
        None,
    ),
    "cpu": (1, 8, 32, 2, 0.5, None),
}


def option_sets(seed: int) -> Iterator[OptionSet]:
    """Yield sets without end; each can also be sent as a form: no lists and no booleans."""
    random = Random(seed)
    offers = Offers.parse(**OFFERS)
    while True:
        yield _on_offer(random, offers) if random.random() < 0.7 else _any(random)


def _on_offer(random: Random, offers: Offers) -> OptionSet:
    accelerator = random.choice([None, *offers.accelerators.values()])
    choices = offers.choices(accelerator)
    fields: tuple[Option[Any], ...] = (GPUS, IMAGE, CPU)
    chosen = {it.name: it.write(random.choice(it.choices(choices))) for it in fields}
    chosen["memory"] = random.choice(choices.sizes).text
    some: OptionSet = {name: value for name, value in chosen.items() if random.random() < 0.6}
    return {"accelerator": accelerator.key if accelerator else None, **some}


def _any(random: Random) -> OptionSet:
    names = [name for name in _VALUES if random.random() < 0.6]
    if random.random() < 0.03:
        names.append("profile")
    return {name: random.choice(_VALUES.get(name, ("x",))) for name in names}


def as_form(options: OptionSet) -> dict[str, list[str]]:
    """Return the options as the fields of a form, as JupyterHub passes them."""
    return {name: ["" if value is None else str(value)] for name, value in options.items()}
