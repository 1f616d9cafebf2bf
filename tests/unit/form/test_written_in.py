"""Images and sizes that a person may write in."""

import pytest

from gpuspawner.form import render
from gpuspawner.messages import Message, OnForm
from gpuspawner.offers import Offers
from gpuspawner.options import parse
from tests.unit.form.drawing import drawn, rows_of
from tests.unit.form.page import Page

WRITABLE = Offers.parse(
    accelerators={"t4": {"node_selector": {"gpu": "t4"}}},
    images={"m": {"image": "m:1"}},
    memory_choices=["8Gi"],
    unlisted_image={"validation_regex": "quay.io/.*"},
    unlisted_memory={"min": "1Gi", "max": "16Gi"},
)


def test_what_may_be_written_in_has_a_field_beside_the_list_and_is_kept():
    chosen = {"accelerator": "t4", "image": "quay.io/me/mine:1", "memory": "3Gi"}
    page = drawn(chosen, offers=WRITABLE, rows=rows_of(WRITABLE))
    image, memory = page.all("input", type="text")

    assert (image["name"], image["value"]) == ("unlisted_image", "quay.io/me/mine:1")
    assert (memory["name"], memory["value"]) == ("unlisted_memory", "3Gi")
    assert "from 1Gi to 16Gi" in page.by_id(memory["aria-describedby"]).text.replace("F", "f")
    assert [e["value"] for e in drawn(None, WRITABLE, rows_of(WRITABLE)).all("input", type="text")]


def test_what_was_written_in_wrongly_stays_to_be_corrected():
    chosen = {"accelerator": "t4", "image": "docker.io/evil"}
    told = OnForm.of_errors(parse(chosen, WRITABLE))
    page = drawn(chosen, offers=WRITABLE, rows=rows_of(WRITABLE), told=told)
    image = page.one("input", name="unlisted_image")

    assert image["value"] == "docker.io/evil"
    assert image["aria-invalid"] == "true"
    assert "not on offer" in page.by_id((image["aria-describedby"] or "").split()[0]).text
    assert page.one("select", name="image")["aria-invalid"] is None


@pytest.mark.parametrize("image", ["docker.io/gone", "\ud800"])
def test_what_was_written_in_once_and_is_gone_is_not_written_in_again(image):
    """REST takes any text that JSON can spell, and a page cannot have all of them."""
    offers = Offers.parse(unlisted_image={"validation_regex": "quay.io/.*"})
    told = OnForm(Message.of("It is gone."))
    html = render(offers, rows_of(offers), {"image": image}, told)

    assert Page(html).one("input", name="unlisted_image")["value"] == ""
    assert html.encode()
