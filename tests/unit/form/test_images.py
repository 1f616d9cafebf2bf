"""What the form says of images that the machines have already."""

from msgspec.structs import replace

from gpuspawner.availability import Availability, State
from gpuspawner.form import Live
from tests.unit.form.drawing import OFFERS, ROWS, TIED, drawn, options_of

FREE, BUSY, NONE = ROWS
LIVE = Live(style="/style", script="/script", states="/states", decision="/decision")
READY = "PyTorch (no download needed)"


def with_images(row: Availability, *keys: str) -> Availability:
    return replace(row, at_hand=frozenset(keys))


def test_an_image_on_all_machines_needs_no_download() -> None:
    rows = (with_images(FREE, "pytorch"), BUSY, with_images(NONE, "pytorch", "minimal"))

    assert options_of(drawn(rows=rows), "image")["pytorch"] == READY
    assert options_of(drawn(rows=rows), "image")["minimal"] == "minimal"


def test_an_image_that_one_choice_has_to_download_is_not_marked() -> None:
    rows = (with_images(FREE, "pytorch"), BUSY, NONE)

    assert options_of(drawn(rows=rows), "image")["pytorch"] == "PyTorch"


def test_a_new_machine_has_no_image() -> None:
    grows = replace(BUSY, state=State.CAN_SCALE_UP)
    rows = (with_images(FREE, "pytorch"), grows, with_images(NONE, "pytorch"))

    assert options_of(drawn(rows=rows), "image")["pytorch"] == "PyTorch"


def test_each_accelerator_with_images_of_its_own_says_what_it_has() -> None:
    t4 = Availability(TIED.accelerators["t4"], State.FREE, at_hand=frozenset({"cuda", "m"}))
    page = drawn(offers=TIED, rows=(t4, Availability(None, State.FREE)))

    assert options_of(page, "image--t4")["cuda"] == "cuda (no download needed)"
    assert options_of(page, "image--") == {"m": "m"}


def test_an_open_form_can_mark_images_by_its_script() -> None:
    root = drawn(rows=ROWS, offers=OFFERS, live=LIVE).one("div", **{"class": "gpuspawner"})

    assert root["data-ready"] == "{choice} (no download needed)"
