"""Text fields for images and sizes that aren't listed."""

import pytest

from gpuspawner.form import render
from gpuspawner.messages import Message, OnForm
from gpuspawner.offers import Offers
from gpuspawner.options import parse
from tests.unit.form.drawing import drawn, rows_of
from tests.unit.form.page import Page

pytestmark = pytest.mark.each_python

WRITABLE = Offers.parse(
    accelerators={"t4": {"node_selector": {"gpu": "t4"}}},
    images={"m": {"image": "m:1"}},
    memory_choices=["8Gi"],
    unlisted_image={"validation_regex": "quay.io/.*"},
    unlisted_memory={"min": "1Gi", "max": "16Gi"},
)


def test_a_text_field_keeps_an_allowed_value():
    chosen = {"accelerator": "t4", "image": "quay.io/me/mine:1", "memory": "3Gi"}
    page = drawn(chosen, offers=WRITABLE, rows=rows_of(WRITABLE))
    image, memory = page.all("input", type="text")

    assert (image["name"], image["value"]) == ("unlisted_image", "quay.io/me/mine:1")
    assert (memory["name"], memory["value"]) == ("unlisted_memory", "3Gi")
    assert "A size from 1Gi to 16Gi" in page.by_id(memory["aria-describedby"]).text
    assert [e["value"] for e in drawn(None, WRITABLE, rows_of(WRITABLE)).all("input", type="text")]


def test_a_refused_value_stays_in_its_text_field():
    chosen = {"accelerator": "t4", "image": "docker.io/evil"}
    told = OnForm.of_errors(parse(chosen, WRITABLE))
    page = drawn(chosen, offers=WRITABLE, rows=rows_of(WRITABLE), told=told)
    image = page.one("input", name="unlisted_image")

    assert image["value"] == "docker.io/evil"
    assert image["aria-invalid"] == "true"
    assert "isn't offered" in page.by_id((image["aria-describedby"] or "").split()[0]).text
    assert page.one("select", name="image")["aria-invalid"] is None


@pytest.mark.parametrize("image", ["docker.io/gone", "\ud800"])
def test_a_stored_value_that_is_no_longer_allowed_is_dropped(image):
    """REST accepts any JSON text, and a page can't show all of them."""
    offers = Offers.parse(unlisted_image={"validation_regex": "quay.io/.*"})
    told = OnForm(Message.of("It is gone."))
    html = render(offers, rows_of(offers), {"image": image}, told)

    assert Page(html).one("input", name="unlisted_image")["value"] == ""
    assert html.encode()
