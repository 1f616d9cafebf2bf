"""No answer that is late, and no refusal that is old, stays. Here the test answers, not a hub."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest
from msgspec.structs import replace
from playwright.sync_api import Browser, Locator, Mouse, Page, Route, expect

from gpuspawner.form.render import render, render_refusal
from gpuspawner.form.view_model import STATIC, LiveAddresses
from gpuspawner.messages import Message, OnForm
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.options import FieldError
from gpuspawner.preflight.decision import Alternative, Difference
from gpuspawner.profiles import page
from tests.unit.makers.drawing import OFFERS, ROWS, rows_of
from tests.waiting import PATIENCE, wait_for

SITE = "http://hub.test"
LIVE = LiveAddresses(
    style="/form.css",
    script="/form.js",
    states="/states",
    decision="/decision",
    stream="/hub/gpuspawner/stream/ann/",
    follow="/follow.js",
)
IN_USE = Message.of("The one T4 is in use.")
MARKED = tuple(FieldError(it, "No.") for it in ("accelerator", "memory"))
REFUSED = OnForm(IN_USE, MARKED, place=2, is_foretold=True)
QUOTA = OnForm(Message.of("The quota is used up."), MARKED)


def form(told: OnForm | None = None, gpus: int = 1) -> str:
    chosen = {"accelerator": "t4", "gpus": gpus} if told else None
    shown = render(OFFERS, ROWS, chosen, told, LIVE)
    action = "/hub/spawn?_xsrf=old&_xsrf=x"
    return f'<form action="{action}">{shown}<button>Start</button></form>'


def profiles(told: OnForm) -> str:
    """A form of KubeSpawner's with one profile, and what gpuspawner puts above and below it."""
    radio = '<input type="radio" name="profile" value="gpu" checked>'
    shown = f'{render_refusal(told, LIVE)}<div id="kubespawner-profiles-list">{radio}</div>'
    below = page.live(replace(LIVE, script="/profiles.js"))
    return f'<form action="/hub/spawn?_xsrf=x">{shown}{below}<button>Start</button></form>'


LISTED = Offers.parse(
    accelerators={"t4": {"counts": [1, 2], "node_selector": {"gpu": "t4"}}},
    memory_choices=["64Gi", "128Gi"],
    unlisted_memory={"min": "4Gi", "max": "128Gi"},
)


def written() -> str:
    """A form in which users can write in less memory than the list has."""
    shown = render(LISTED, rows_of(LISTED), {"accelerator": "t4"}, live=LIVE)
    return f'<form action="/hub/spawn?_xsrf=x">{shown}<button>Start</button></form>'


GONE = OnForm(Message.of("Your last choices are gone."), is_refusal=False)
WRONG_PROFILE = OnForm.of_errors((FieldError("image", "evil isn't allowed.", "Your image"),))
INSTEAD = Alternative(Grant(OFFERS.accelerators["a100"], 1), (Difference.OTHER_ACCELERATOR,), None)
WRONG = OnForm.of_errors((FieldError("gpus", "999 isn't offered."),))
FORMS = {
    "form": form(),
    "refused": form(REFUSED),
    "quota": form(QUOTA),
    "gone": form(GONE),
    "wrong": form(WRONG, 999),
    "written": written(),
    "instead": form(OnForm(IN_USE, alternatives=(INSTEAD,))),
    "profiles": profiles(OnForm(IN_USE)),
    "wrong-profiles": profiles(WRONG_PROFILE),
}
# Counts what the page has read, and lets it wait for answers however slow the machine is.
SCRIPT = """
  AbortSignal.timeout = () => new AbortController().signal;
  window.read = 0;
  for (const [kind, name] of [[Response, "json"], [ReadableStreamDefaultReader, "read"]]) {
    const original = kind.prototype[name];
    kind.prototype[name] = async function () {
      const it = await original.call(this);
      window.read += 1;
      return it;
    };
  }
"""


def states(free: int, queue: object = None) -> dict[str, Any]:
    """What the hub says of the accelerators, with so many GPUs free of the T4's."""
    rows = []
    for key, left in (("a100", 4), ("t4", free), (None, None)):
        gpus = {"free": left, "total": 8} if key else None
        told = {"word": "Free", "detail": f"{left} free", "gpus": gpus, "left": None}
        more = {"machines": None, "images": []}
        rows.append({"accelerator": key, "state": "free", **told, **more})
    return {"accelerators": rows, "queue": queue}


@dataclass
class Hub:
    """Serves the form, and holds what its page asks until the test answers.

    Attributes:
        page: The page, whose clock the test sets forward.
        asked: The requests of each path, in order.
    """

    page: Page
    asked: dict[str, list[Route]] = field(default_factory=dict)

    def take(self, route: Route) -> None:
        name = urlsplit(route.request.url).path.removeprefix("/")
        name = "stream" if "/stream/" in name else name
        if name in FORMS:
            route.fulfill(body=FORMS[name], content_type="text/html")
        elif (STATIC / name).is_file():
            route.fulfill(path=STATIC / name)
        else:
            self.asked.setdefault(name, []).append(route)

    def until_asked(self, name: str, times: int) -> Route:
        """Wait until the page has asked so many times; return the last request."""

        def last() -> Route | None:
            self.page.evaluate("0")  # lets requests in
            asked = self.asked.get(name, [])
            return asked[times - 1] if len(asked) >= times else None

        return wait_for(last)

    def answer(self, route: Route, answer: object) -> None:
        """Answer, and wait until the page has taken the answer."""
        self._fulfill(route, "application/json", json.dumps(answer))

    def stream(self, route: Route, told: object) -> None:
        """Send one event, and end the stream."""
        self._fulfill(route, "text/event-stream", f"retry: 1\ndata: {json.dumps(told)}\n\n")

    def _fulfill(self, route: Route, content_type: str, body: str) -> None:
        read = self.page.evaluate("window.read")
        route.fulfill(body=body, content_type=content_type)
        self.page.wait_for_function("(before) => window.read > before", arg=read)


@pytest.fixture
def hub(browser: Browser, shown: str) -> Iterator[Hub]:
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(1000 * PATIENCE)
    page.clock.install(time=0)
    page.clock.pause_at(1)  # however slow the machine is, only a test lets time pass
    page.add_init_script(SCRIPT)
    made = Hub(page)
    page.route("**/*", made.take)
    page.goto(f"{SITE}/{shown}")
    yield made
    context.close()


@pytest.fixture
def shown() -> str:
    """The page that is open."""
    return "form"


def t4(hub: Hub) -> Locator:
    return hub.page.locator("[data-accelerator='t4'] .gpuspawner-detail")


def answer_of(hub: Hub) -> Locator:
    return hub.page.get_by_role("status")


def ask_twice(hub: Hub) -> tuple[Route, Route]:
    """Choose one accelerator after the other; return both questions."""
    hub.stream(hub.until_asked("stream", 1), states(1))
    hub.page.clock.run_for(1000)
    hub.until_asked("decision", 1)  # about what the page shows at first
    questions = []
    for times, key in enumerate(("t4", "a100"), 2):
        hub.page.locator(f"[data-accelerator='{key}'] input[type=radio]").check()
        hub.page.clock.run_for(1000)
        questions.append(hub.until_asked("decision", times))
    return questions[0], questions[1]


def test_a_screen_reader_knows_the_status_before_it_says_anything(hub: Hub) -> None:
    """One that comes with its text isn't read out."""
    expect(answer_of(hub)).to_have_text("")


def test_a_page_whose_address_has_an_old_token_asks_with_that_of_its_form(hub: Hub) -> None:
    """As one from the browser's history: the page of a refusal has a token in its address."""
    assert hub.until_asked("stream", 1).request.headers["x-xsrftoken"] == "x"


def test_an_answer_about_earlier_choices_doesnt_replace_that_about_the_last(hub: Hub) -> None:
    first, last = ask_twice(hub)
    hub.answer(last, {"decision": "start", "message": "There is room."})
    expect(answer_of(hub)).to_have_text("There is room.")

    hub.answer(first, {"decision": "refuse", "message": "All are in use."})

    expect(answer_of(hub)).to_have_text("There is room.")
    expect(answer_of(hub)).to_have_attribute("data-decision", "start")


def test_a_choice_is_asked_about_once_also_if_the_states_change_in_that_moment(hub: Hub) -> None:
    stream = hub.until_asked("stream", 1)
    hub.page.locator("[data-accelerator='t4'] input[type=radio]").check()

    hub.stream(stream, states(1))

    hub.page.clock.run_for(1000)
    hub.until_asked("decision", 1)
    assert len(hub.asked["decision"]) == 1


def test_an_earlier_question_that_fails_late_leaves_the_answer_to_the_last(hub: Hub) -> None:
    first, last = ask_twice(hub)
    hub.answer(last, {"decision": "start", "message": "There is room."})

    with hub.page.expect_event("requestfailed"):
        first.abort()
    hub.page.evaluate("0")

    expect(answer_of(hub)).to_have_text("There is room.")


def test_states_that_the_page_asked_for_before_an_event_dont_replace_those_of_the_event(
    hub: Hub,
) -> None:
    stream = hub.until_asked("stream", 1)
    hub.page.clock.run_for(3001)  # the page has heard nothing so far
    asked = hub.until_asked("states", 1)
    hub.stream(stream, states(1))
    expect(t4(hub)).to_have_text("1 free")

    hub.answer(asked, states(0))

    expect(t4(hub)).to_have_text("1 free")


def test_states_that_the_page_asked_for_earlier_dont_replace_those_it_asked_for_later(
    hub: Hub,
) -> None:
    hub.until_asked("stream", 1)
    hub.page.clock.run_for(3001)
    first = hub.until_asked("states", 1)
    hub.page.clock.run_for(11_001)
    last = hub.until_asked("states", 2)
    hub.answer(last, states(1))
    expect(t4(hub)).to_have_text("1 free")

    hub.answer(first, states(0))

    expect(t4(hub)).to_have_text("1 free")


def test_states_that_come_too_late_let_the_page_ask_for_no_other_decision(hub: Hub) -> None:
    stream = hub.until_asked("stream", 1)
    hub.page.clock.run_for(3001)
    late = hub.until_asked("states", 1)
    hub.stream(stream, states(1))
    hub.page.clock.run_for(1000)
    decision = hub.until_asked("decision", 1)
    hub.answer(decision, {"decision": "start", "message": "There is room."})

    hub.answer(late, states(0))
    hub.page.clock.run_for(6000)
    hub.stream(hub.until_asked("stream", 2), states(1))
    hub.page.clock.run_for(1000)

    hub.page.evaluate("0")
    assert hub.asked["decision"] == [decision]


def test_a_page_that_is_current_again_asks_for_the_answer_that_a_warning_has_replaced(
    hub: Hub,
) -> None:
    """Nothing else has changed, such as after the network was away for a moment."""
    hub.stream(hub.until_asked("stream", 1), states(1))
    hub.page.clock.run_for(1000)
    room = {"decision": "start", "message": "There is room."}
    hub.answer(hub.until_asked("decision", 1), room)
    hub.page.clock.run_for(6000)
    hub.until_asked("stream", 2).fulfill(status=502)
    hub.until_asked("states", 1).fulfill(status=502)
    expect(answer_of(hub)).to_have_text("We can't refresh these figures right now.")

    hub.page.clock.run_for(6000)
    hub.stream(hub.until_asked("stream", 3), states(1))
    hub.page.clock.run_for(1000)

    hub.answer(hub.until_asked("decision", 2), room)
    expect(answer_of(hub)).to_have_text("There is room.")


@pytest.mark.parametrize("shown", ["written"])
def test_a_size_that_is_written_in_counts_and_not_the_one_in_the_list_beside_it(hub: Hub) -> None:
    """Else, the form greys out what a machine has together with it."""
    told = states(1)["accelerators"]
    whole = [{"gpus": 2, "memory": 32 * 2**30, "cpu": 8000}]
    machines = {"free": whole, "whole": whole}
    rows = [{**it, "machines": machines} for it in told if it["accelerator"] != "a100"]
    hub.stream(hub.until_asked("stream", 1), {"accelerators": rows, "queue": None})
    both = hub.page.locator("select[name=gpus--t4] option").filter(has_text="2")
    expect(both).to_be_disabled()

    hub.page.locator("input[name=unlisted_memory]").fill("16Gi")

    expect(both).to_be_enabled()


def of_queue(waiting: str, version: str = "1") -> dict[str, str]:
    return {"name": "gpus", "message": f"The queue decides. {waiting}", "version": version}


def next_states(hub: Hub, event: int, queue: object) -> None:
    """Let the page's stream tell of a queue."""
    hub.page.clock.run_for(6000)
    hub.stream(hub.until_asked("stream", event), states(1, queue))
    hub.page.clock.run_for(1000)


def test_who_waits_in_a_queue_is_told_without_a_question(hub: Hub) -> None:
    next_states(hub, 1, of_queue("Nobody waits."))
    answer = {"decision": "start", "message": "The queue decides. Old.", "queue": "gpus"}
    hub.answer(hub.until_asked("decision", 1), answer)
    expect(answer_of(hub)).to_have_text("The queue decides. Nobody waits.")

    next_states(hub, 2, of_queue("1 waits."))

    expect(answer_of(hub)).to_have_text("The queue decides. 1 waits.")
    assert len(hub.asked["decision"]) == 1


@pytest.mark.parametrize("shown", ["refused"])
def test_a_refusal_by_a_queue_goes_once_the_queue_decides_otherwise(hub: Hub) -> None:
    next_states(hub, 1, of_queue("", "stopped"))
    hub.answer(hub.until_asked("decision", 1), {"decision": "refuse", "message": "Stopped."})
    expect(hub.page.get_by_role("alert")).to_be_visible()

    next_states(hub, 2, of_queue("Nobody waits."))
    answer = {"decision": "start", "message": "The queue decides.", "queue": "gpus"}
    hub.answer(hub.until_asked("decision", 2), answer)

    expect(answer_of(hub)).to_have_text("The queue decides. Nobody waits.")
    expect(hub.page.get_by_role("alert")).to_be_hidden()


@pytest.fixture
def pressed(hub: Hub) -> Mouse:
    """The mouse, which presses the button while the page waits for its first decision."""
    hub.stream(hub.until_asked("stream", 1), states(1))
    hub.page.clock.run_for(1000)
    hub.until_asked("decision", 1)
    hub.page.evaluate(
        """() => document.forms[0].addEventListener("submit", (event) => {
          event.preventDefault();
          window.isSubmitted = true;
        })"""
    )
    hub.page.get_by_role("button", name="Start").hover()
    hub.page.mouse.down()
    return hub.page.mouse


def test_a_button_under_an_answer_that_comes_while_it_is_pressed_is_clicked(
    hub: Hub, pressed: Mouse
) -> None:
    hub.answer(hub.asked["decision"][0], {"decision": "start", "message": "There is room."})
    assert answer_of(hub).is_hidden()

    pressed.up()

    assert hub.page.evaluate("window.isSubmitted")
    hub.page.clock.run_for(1000)
    expect(answer_of(hub)).to_have_text("There is room.")


def test_states_that_come_while_something_is_pressed_are_shown_after_it(
    hub: Hub, pressed: Mouse
) -> None:
    hub.page.clock.run_for(6000)
    hub.stream(hub.until_asked("stream", 2), states(0))
    assert t4(hub).text_content() == "1 free"

    pressed.up()

    hub.page.clock.run_for(1000)
    expect(t4(hub)).to_have_text("0 free")


@pytest.mark.parametrize("asked", ["stream", "decision"])
def test_who_has_logged_out_elsewhere_is_led_back_to_the_form(hub: Hub, asked: str) -> None:
    link = hub.page.get_by_role("link", name="Your login has ended. Log in again.")
    hub.stream(hub.until_asked("stream", 1), states(4))
    hub.page.clock.run_for(6000)
    route = hub.until_asked(asked, {"stream": 2, "decision": 1}[asked])
    expect(link).to_be_hidden()
    route.fulfill(status=403, body="{}")

    expect(link).to_have_attribute("href", "/hub/login?next=%2Fform")
    hub.page.clock.run_for(20_000)
    expect(link).to_have_count(1)  # however often the page asks


OF_A_REFUSAL = pytest.mark.parametrize("shown", ["refused"])


@pytest.fixture
def refused(hub: Hub) -> Hub:
    """The hub has just repeated the refusal of the page."""
    hub.stream(hub.until_asked("stream", 1), states(0))
    hub.page.clock.run_for(1000)
    hub.answer(hub.until_asked("decision", 1), {"decision": "refuse", "message": "All in use."})
    return hub


def errors_of(hub: Hub) -> tuple[int, int]:
    """How many texts at fields there are, and how many fields are marked as wrong."""
    marked = hub.page.locator(".is-invalid, [aria-invalid]")
    return hub.page.get_by_text("No.", exact=True).count(), marked.count()


def waiting_of(hub: Hub) -> Locator:
    return hub.page.get_by_role("button", name="Wait in line")


@OF_A_REFUSAL
def test_a_refusal_of_what_is_chosen_isnt_repeated_and_stays(refused: Hub) -> None:
    refused.page.get_by_label("Start my server even if I have closed the page by then").check()
    refused.page.clock.run_for(1000)
    again = {"decision": "refuse", "message": "All in use."}
    refused.answer(refused.until_asked("decision", 2), again)

    expect(refused.page.get_by_text(IN_USE.text)).to_be_visible()
    expect(answer_of(refused)).to_be_hidden()
    assert errors_of(refused) == (2, 1)
    expect(waiting_of(refused)).to_be_visible()


@OF_A_REFUSAL
def test_a_refusal_goes_when_something_else_is_chosen(refused: Hub) -> None:
    refused.page.locator("[data-accelerator='a100'] input[type=radio]").check()

    expect(refused.page.get_by_text(IN_USE.text)).to_be_hidden()
    expect(waiting_of(refused)).to_be_hidden()
    assert errors_of(refused) == (0, 0)


@OF_A_REFUSAL
def test_a_refusal_goes_when_the_hub_would_start_what_it_refused(refused: Hub) -> None:
    refused.page.clock.run_for(6000)
    refused.stream(refused.until_asked("stream", 2), states(1))
    refused.page.clock.run_for(1000)

    room = {"decision": "start", "message": "There is room."}
    refused.answer(refused.until_asked("decision", 2), room)

    expect(answer_of(refused)).to_have_text("There is room.")
    expect(refused.page.get_by_text(IN_USE.text)).to_be_hidden()
    expect(waiting_of(refused)).to_be_hidden()
    assert errors_of(refused) == (0, 0)


@pytest.mark.parametrize(("shown", "stays"), [("refused", False), ("quota", True), ("wrong", True)])
def test_a_refusal_goes_at_the_first_answer_unless_the_answers_dont_foretell_it(
    hub: Hub, stays: bool
) -> None:
    hub.stream(hub.until_asked("stream", 1), states(1))
    hub.page.clock.run_for(1000)
    room = {"decision": "start", "message": "There is room."}
    hub.answer(hub.until_asked("decision", 1), room)

    expect(answer_of(hub)).to_have_text("There is room.")
    expect(hub.page.locator(".gpuspawner-refusal")).to_be_visible(visible=stays)
    assert (errors_of(hub)[1] > 0) == stays
    expect(waiting_of(hub)).to_be_hidden()


@pytest.mark.parametrize("shown", ["gone"])
def test_what_a_form_says_of_earlier_choices_stays_beside_the_answer_about_the_new(
    hub: Hub,
) -> None:
    hub.stream(hub.until_asked("stream", 1), states(0))
    hub.page.clock.run_for(1000)
    hub.answer(hub.until_asked("decision", 1), {"decision": "refuse", "message": "All in use."})
    expect(answer_of(hub)).to_have_text("All in use.")

    hub.page.locator("[data-accelerator='a100'] input[type=radio]").check()

    expect(hub.page.get_by_text(GONE.message.text)).to_be_visible()


@pytest.mark.parametrize("shown", ["instead"])
def test_a_button_whose_choice_is_in_use_for_a_moment_comes_back(hub: Hub) -> None:
    button = hub.page.locator("button[name=gpuspawner-instead]")
    taken = states(1)
    taken["accelerators"][0]["state"] = "busy"
    hub.stream(hub.until_asked("stream", 1), taken)
    expect(hub.page.get_by_text("You can start one of these instead:")).to_be_hidden()
    expect(button).to_be_hidden()

    hub.page.clock.run_for(6000)
    hub.stream(hub.until_asked("stream", 2), states(1))

    expect(button).to_be_visible()


@pytest.mark.parametrize(("shown", "stays"), [("profiles", False), ("wrong-profiles", True)])
def test_a_profile_that_becomes_free_makes_no_wrong_choice_right(hub: Hub, stays: bool) -> None:
    for event, state in enumerate(("busy", "free"), 1):
        row = {"profile": "gpu", "state": state, "word": state, "detail": ""}
        found = {"profiles": [{**row, "choices": [], "images": []}]}
        hub.page.clock.run_for(6000)
        hub.stream(hub.until_asked("stream", event), found)

    expect(hub.page.locator(".gpuspawner-refusal")).to_be_visible(visible=stays)
