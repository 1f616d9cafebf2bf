"""Forms for tests, and ways to find things in them."""

from typing import Any

from gpuspawner.form.render import render
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.offers import Offers
from gpuspawner.preflight.availability import Availability, State
from gpuspawner.preflight.decision import Alternative, Difference, ResourceRoom
from tests.unit.makers.pages import Element, Page

OFFERS = Offers.parse(
    accelerators={
        "a100": {
            "display_name": "NVIDIA A100",
            "description": "80 GB, for training",
            "counts": [1, 2, 4],
            "node_selector": {"gpu": "a100"},
            "memory_choices": ["32Gi", "64Gi"],
            "default": {"gpus": 2},
        },
        "t4": {"display_name": "NVIDIA T4", "node_selector": {"gpu": "t4"}},
    },
    images={"minimal": {"image": "m:1"}, "pytorch": {"display_name": "PyTorch", "image": "p:1"}},
    memory_choices=["8Gi", "16Gi"],
    cpu_choices=[2, "500m"],
)
TIED = Offers.parse(
    accelerators={"t4": {"node_selector": {"gpu": "t4"}}},
    images={"m": {"image": "m:1"}, "cuda": {"image": "c:1", "accelerators": ["t4"]}},
)
A100, T4 = OFFERS.accelerators.values()


def room(most_free: int, free: int, total: int, asked: int = 1) -> ResourceRoom:
    return ResourceRoom("nvidia.com/gpu", asked, most_free, free, 4, total)


ROWS = (
    Availability(A100, State.FREE, room(2, 5, 8)),
    Availability(T4, State.BUSY, room(0, 0, 1)),
    Availability(None, State.FREE),
)


def rows_of(offers: Offers) -> tuple[Availability, ...]:
    accelerators = (*offers.accelerators.values(), None)
    return tuple(Availability(accelerator, State.UNKNOWN) for accelerator in accelerators)


def drawn(
    chosen: Any = None, offers: Offers = OFFERS, rows: tuple[Availability, ...] = ROWS, **told: Any
) -> Page:
    return Page(render(offers, rows, chosen, **told))


def options_of(page: Page, name: str) -> dict[str | None, str]:
    select = page.one("select", name=name)
    return {e["value"]: e.text for e in page.all("option") if e.within(select)}


def card(page: Page, value: str) -> Element:
    label = page.one("input", type="radio", value=value).parent
    assert label is not None
    assert label.parent is not None
    return label.parent


def alternatives_of(offers: Offers) -> tuple[Alternative, ...]:
    t4, image = offers.accelerators["t4"], offers.images.get("x") or offers.images["pytorch"]
    room_ = ResourceRoom("nvidia.com/gpu", 1, 2, 2, 4, 4)
    return (
        Alternative(Grant(t4, 1, image, 8 * 2**30, 500), (Difference.OTHER_ACCELERATOR,), room_),
        Alternative(Grant(None, 0, image, 16 * 2**30, 2000), (Difference.NO_GPU,), None),
    )
