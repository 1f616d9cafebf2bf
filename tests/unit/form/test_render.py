"""The spawn form, as a browser without a script reads it."""

import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpuspawner import form as form_package
from gpuspawner.form.render import render
from gpuspawner.form.view_builder import STARTS
from gpuspawner.form.view_model import AboveTheForm, LiveAddresses
from gpuspawner.messages import Message, OnForm
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.options import FieldError
from gpuspawner.offers.types import Accelerator
from gpuspawner.offers.user_options import GPURequest, fall_back, from_form, parse
from gpuspawner.policies.entitlement import within
from gpuspawner.policies.remaining import Remaining
from gpuspawner.preflight.availability import Availability, State
from gpuspawner.preflight.decision import CanScaleUp
from tests.unit.makers.drawing import (
    A100,
    OFFERS,
    ROWS,
    T4,
    TIED,
    alternatives_of,
    card,
    drawn,
    options_of,
    room,
    rows_of,
)
from tests.unit.makers.pages import Page
from tests.unit.makers.translating import Pseudo, speaking

LIVE = LiveAddresses(
    "/s.css?v=1", "/s.js?v=1", "/states/ann/", "/decision/ann/", "/stream/ann/", "/f.js?v=1"
)


def test_every_accelerator_can_be_chosen_and_so_can_none():
    page = drawn()

    radios = page.all("input", type="radio", name="accelerator")
    labels = {it["value"]: page.one("label", **{"for": it["id"]}).text for it in radios}
    assert labels == {"a100": "NVIDIA A100", "t4": "NVIDIA T4", "": "No GPU"}


@pytest.mark.parametrize(
    ("shown", "chosen", "gpus", "memory"),
    [("a100", "t4", 1, "8Gi"), ("a100", "", 0, "8Gi"), ("t4", "a100", 2, "32Gi")],
)
def test_another_accelerator_brings_its_own_defaults(shown, chosen, gpus, memory):
    submitted = drawn({"accelerator": shown}).submitted(accelerator=chosen)

    expected = GPURequest(chosen or None, gpus, "minimal", memory, 2)
    assert parse(from_form(submitted), OFFERS) == expected


def test_only_the_counts_of_the_accelerator_can_be_chosen():
    page = drawn()

    assert list(options_of(page, "gpus--t4")) == ["1"]
    assert not page.all("select", name="gpus--")


OVER = "(more than is left for you)"
GROWING = Availability(A100, State.CAN_SCALE_UP, room(0, 0, 8), CanScaleUp(1, 4, 8))


@pytest.mark.parametrize(
    ("row", "counts"),
    [
        (ROWS[0], ["1", "2", "4 (not free now)"]),
        (within(Remaining(1), ROWS[0]), ["1", f"2 {OVER}", f"4 {OVER}"]),
        (GROWING, ["1", "2", "4"]),
    ],
    ids=["not free", "over a limit", "a new machine brings it"],
)
def test_a_count_is_marked_with_what_keeps_it_from_starting(row, counts):
    shown = options_of(drawn(rows=(row, *ROWS[1:])), "gpus--a100")

    assert shown == dict(zip(("1", "2", "4"), counts, strict=True))


def test_fields_that_depend_on_the_accelerator_are_in_its_card():
    names = " ".join(select["name"] or "" for select in drawn().all("select"))

    assert names == "gpus--a100 memory--a100 gpus--t4 memory--t4 memory-- image cpu"


def test_only_images_that_suit_can_be_chosen():
    page = drawn(offers=TIED, rows=rows_of(TIED))

    assert list(options_of(page, "image--t4")) == ["m", "cuda"]
    assert list(options_of(page, "image--")) == ["m"]


def test_amounts_have_readable_units():
    page = drawn()

    assert options_of(page, "memory--t4") == {"8Gi": "8 GiB", "16Gi": "16 GiB"}
    assert options_of(page, "cpu") == {"2": "2 cores", "0.5": "0.5 cores"}
    assert options_of(page, "image") == {"minimal": "minimal", "pytorch": "PyTorch"}


def test_an_option_without_choices_has_no_field():
    bare = Offers.parse(accelerators={"t4": {"node_selector": {"gpu": "t4"}}})

    selects = drawn(offers=bare, rows=rows_of(bare)).all("select")
    assert [select["name"] for select in selects] == ["gpus--t4"]


hostile = st.recursive(
    st.none() | st.integers() | st.text(max_size=5) | st.sampled_from(["a100", "t4", "pytorch"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["accelerator", "gpus", "memory", "cpu", "x"]), inner)
    ),
    max_leaves=6,
)


@given(hostile, st.sampled_from([OFFERS, TIED]))
@example({}, OFFERS)
@example(
    {"accelerator": "a100", "gpus": 4, "image": "pytorch", "memory": "64Gi", "cpu": 0.5}, OFFERS
)
def test_any_options_give_a_form_that_submits_the_offered_ones(chosen, offers):
    page = Page(render(offers, rows_of(offers), chosen))

    assert parse(from_form(page.submitted()), offers) == fall_back(chosen, offers)[0]


def test_each_state_has_its_own_word_and_shape():
    words, shapes = set(), set()
    for state in State:
        page = drawn(rows=(Availability(T4, state, room(0, 0, 1)),))
        words.add(page.one("span", **{"class": "gpuspawner-word"}).text.strip())
        symbol = page.by_id((page.one("use")["href"] or "").removeprefix("#"))
        drawing = [e for e in page.elements if e.within(symbol) and e is not symbol]
        shapes.add(tuple((e.tag, *sorted(e.attributes.items())) for e in drawing))

    assert len(words) == len(shapes) == len(State)


def test_a_card_shows_its_state_in_words_and_figures():
    page = drawn()

    text = " ".join(card(page, "a100").text.split())
    assert text.startswith(
        "NVIDIA A100 80 GB, for training Free 5 of 8 free, at most 2 on one machine"
    )
    assert "In use the only one is in use" in " ".join(card(page, "t4").text.split())


def test_free_gpus_are_lit():
    page = drawn()
    lamps = [e for e in page.all("i") if e.within(card(page, "a100"))]

    assert [bool(lamp["class"]) for lamp in lamps] == [True] * 5 + [False] * 3
    many = drawn(rows=(Availability(A100, State.FREE, room(2, 5, 17)),))
    assert not many.all("i")


def test_every_field_has_a_label_and_every_reference_a_target():
    page = drawn(told=OnForm.of_errors((FieldError("gpus", "no"), FieldError("accelerator", "no"))))
    ids = [e["id"] for e in page.elements if e["id"]]

    assert len(ids) == len(set(ids))
    for element in page.all("select") + page.all("input"):
        assert page.one("label", **{"for": element["id"]}).text.strip()
    for element in page.elements:
        assert set((element["aria-describedby"] or "").split()) <= set(ids)


def test_names_and_errors_are_escaped():
    evil = "<img src=x onerror=alert(1)>\"'"
    offers = Offers.parse(
        accelerators={
            "t4": {"display_name": evil, "description": evil, "node_selector": {"gpu": "t4"}}
        },
        images={"x": {"display_name": evil, "image": "x"}},
    )
    errors = (FieldError("", evil), FieldError("accelerator", evil), FieldError("gpus", evil))
    chosen = {"accelerator": evil, evil: evil}
    told = OnForm(Message.of(evil, evil), errors, alternatives_of(offers))
    page = Page(render(offers, rows_of(offers), chosen, told))

    assert not page.all("img")
    assert page.one("label", **{"for": "gpuspawner-card-1"}).text == evil


def test_the_style_uses_the_hubs_colours_only():
    style = (Path(form_package.__file__).parent / "static" / "form.css").read_text()

    assert not re.search(r"#[0-9a-f]{3,8}\b|\brgb|\bhsl|url\(|@import|</", style)
    assert set(re.findall(r"var\((--[a-z]+)", style)) == {"--bs", "--gap"}


def test_a_card_says_how_a_gpu_is_shared():
    resources = {"shared": "gpu.shared", "slice": "mig-3g.20gb", "whole": "gpu"}
    offers = Offers.parse(
        accelerators={
            key: {"resource": f"nvidia.com/{it}", "node_selector": {"gpu": key}}
            for key, it in resources.items()
        }
    )
    page = drawn(offers=offers, rows=rows_of(offers))

    assert "its memory at the same time" in card(page, "shared").text
    assert "with its own 20 GB of memory" in card(page, "slice").text
    assert "memory" not in card(page, "whole").text


def test_what_became_of_the_last_server_is_not_among_the_limits():
    failed = "Your last start failed: <b>no</b> disk."
    page = drawn(usage=AboveTheForm((failed,), ("You can use 2 GPUs at a time.",)))
    alone = drawn(usage=AboveTheForm((failed,)))
    limits = page.one("div", **{"aria-label": "What you can use"})

    assert limits.text.strip() == "You can use 2 GPUs at a time."
    for shown in (page, alone):
        assert [it.text for it in shown.all("p", **{"class": "text-break"})] == [failed]
    assert not alone.all("div", **{"aria-label": "What you can use"})


def test_what_is_withheld_is_below_the_accelerators_and_above_the_sizes():
    h100 = Accelerator("h100", "NVIDIA H100", "nvidia.com/gpu", "80 GB")
    page = drawn(usage=AboveTheForm(withheld=((h100, "For <b>research</b>."),)))
    shown = page.one("ul", **{"aria-label": "Not offered to you"})

    assert "For <b>research</b>." in shown.text
    cards, sizes = page.all("fieldset")
    order = [page.elements.index(it) for it in (cards, shown, sizes)]
    assert order == sorted(order)


def test_a_live_form_has_nothing_inline():
    page = drawn(live=LIVE)

    assert page.one("link", rel="stylesheet")["href"] == LIVE.style
    scripts = {it["src"]: it.text.strip() for it in page.all("script")}
    assert scripts == {LIVE.follow: "", LIVE.script: ""}
    assert not page.all("style")
    for element in page.elements:
        assert not any(name == "style" or name.startswith("on") for name in element.attributes)


def test_a_form_without_handlers_refers_to_no_other_files():
    page = drawn()

    assert not page.all("script") + page.all("link")
    assert page.one("style").text.lstrip().startswith("/*")


def test_what_was_drawn_in_one_language_is_not_shown_in_another():
    english = drawn(live=LIVE)
    with speaking("x", Pseudo()):
        other = drawn(live=LIVE)

    for page, is_english in ((english, True), (other, False), (drawn(live=LIVE), True)):
        root = page.all("div")[0]
        texts = (page.all("legend")[0].text, page.all("label")[-1].text, root["data-stale"])
        assert [("⟦" not in (it or "")) for it in texts] == [is_english] * 3


@pytest.mark.parametrize(
    ("state", "of_none", "pytorch"),
    [
        (State.BUSY, {"pytorch", "minimal"}, "PyTorch (no download needed)"),
        (State.BUSY, set(), "PyTorch"),
        (State.CAN_SCALE_UP, {"pytorch"}, "PyTorch"),
    ],
    ids=["on all", "one choice has to download it", "a new machine"],
)
def test_only_an_image_on_all_machines_needs_no_download(state, of_none, pytorch):
    free, busy, none = ROWS
    at_hand = replace(free, at_hand=frozenset({"pytorch"}))
    rows = (at_hand, replace(busy, state=state), replace(none, at_hand=frozenset(of_none)))

    assert options_of(drawn(rows=rows), "image") == {"minimal": "minimal", "pytorch": pytorch}


def test_each_accelerator_with_images_of_its_own_says_what_it_has():
    t4 = Availability(TIED.accelerators["t4"], State.FREE, at_hand=frozenset({"cuda", "m"}))
    page = drawn(offers=TIED, rows=(t4, Availability(None, State.FREE)))

    assert options_of(page, "image--t4")["cuda"] == "cuda (no download needed)"
    assert options_of(page, "image--") == {"m": "m"}


def test_an_open_form_can_mark_images_by_its_script():
    root = drawn(rows=ROWS, offers=OFFERS, live=LIVE).one("div", **{"class": "gpuspawner"})

    assert root["data-ready"] == "{choice} (no download needed)"


WRITABLE = Offers.parse(
    accelerators={"t4": {"node_selector": {"gpu": "t4"}}},
    images={"m": {"image": "m:1"}},
    memory_choices=["8Gi"],
    unlisted_image={"validation_regex": "quay.io/.*"},
    unlisted_memory={"min": "1Gi", "max": "16Gi"},
)


@pytest.mark.each_python
def test_a_text_field_keeps_an_allowed_value():
    chosen = {"accelerator": "t4", "image": "quay.io/me/mine:1", "memory": "3Gi"}
    page = drawn(chosen, offers=WRITABLE, rows=rows_of(WRITABLE))
    image, memory = page.all("input", type="text")

    assert (image["name"], image["value"]) == ("unlisted_image", "quay.io/me/mine:1")
    assert (memory["name"], memory["value"]) == ("unlisted_memory", "3Gi")
    assert "A size from 1Gi to 16Gi" in page.by_id(memory["aria-describedby"]).text
    assert [e["value"] for e in drawn(None, WRITABLE, rows_of(WRITABLE)).all("input", type="text")]


@pytest.mark.each_python
def test_a_refused_value_stays_in_its_text_field():
    chosen = {"accelerator": "t4", "image": "docker.io/evil"}
    told = OnForm.of_errors(parse(chosen, WRITABLE))
    page = drawn(chosen, offers=WRITABLE, rows=rows_of(WRITABLE), told=told)
    image = page.one("input", name="unlisted_image")

    assert image["value"] == "docker.io/evil"
    assert image["aria-invalid"] == "true"
    assert "isn't offered" in page.by_id((image["aria-describedby"] or "").split()[0]).text
    assert page.one("select", name="image")["aria-invalid"] is None


@pytest.mark.each_python
@pytest.mark.parametrize("image", ["docker.io/gone", "\ud800"])
def test_a_stored_value_that_is_no_longer_allowed_is_dropped(image):
    """REST accepts any JSON text, and a page can't show all of them."""
    offers = Offers.parse(unlisted_image={"validation_regex": "quay.io/.*"})
    told = OnForm(Message.of("It is gone."))
    html = render(offers, rows_of(offers), {"image": image}, told)

    assert Page(html).one("input", name="unlisted_image")["value"] == ""
    assert html.encode()


@pytest.mark.parametrize(
    "state", [it for it in State if it is not State.WITHHELD]
)  # no card has it
def test_only_a_card_has_the_class_of_a_state(state):
    """Each state's class has rules of its own in the style sheet."""
    folder = Path(form_package.__file__).parent / "templates"
    drawn_by = "".join(path.read_text() for path in folder.glob("*.html"))
    written = re.findall(r'class="[^"]*"', drawn_by)

    assert [it for it in written if re.search(rf"gpuspawner-{state}\b(?!-)", it)] == []


def test_the_script_knows_with_which_states_the_hub_would_start_a_server():
    script = (Path(form_package.__file__).parent / "static/follow.js").read_text()
    [listed] = re.findall(r"gpuspawnerStarts = .*\n\s*\[null, (.*)\]", script)

    assert set(re.findall(r'"(.*?)"', listed)) == set(STARTS)


def test_names_of_an_administrator_are_kept_apart_from_a_text_in_the_other_direction():
    html = render(OFFERS, rows_of(OFFERS))

    assert "<bdi>NVIDIA A100</bdi>" in html
