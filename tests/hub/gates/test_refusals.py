"""A hub shows a refusal wherever it is raised, and never stops because of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tests.hub.configurations import ANSWER_AT_ONCE, SLOW_AUTHENTICATOR
from tests.hub.conftest import StartHub
from tests.hub.people import Page, Person
from tests.hub.refusing import FULL
from tests.hub.running import RunningHub
from tests.waiting import wait_for

pytestmark = [pytest.mark.each_hub, pytest.mark.xdist_group("refusals")]

REFUSING = """
from tests.hub.refusing import RefusingSpawner
c.JupyterHub.spawner_class = RefusingSpawner
c.Spawner.consecutive_failure_limit = 5
# A busy machine may need more than JupyterHub's 10 s; the answer must still be the refusal.
c.JupyterHub.tornado_settings = {"slow_spawn_timeout": 60}
"""
BEFORE_THE_ANSWER = ["form", "hook", "start"]
BY_REST = ["hook", "start", "late"]


@pytest.fixture(scope="module")
def hub(start_hub: StartHub) -> Iterator[RunningHub]:
    with start_hub(REFUSING) as running:
        yield running


def test_a_refused_form_is_shown_again_with_the_message(hub: RunningHub) -> None:
    alice = hub.person("alice")

    for place in BEFORE_THE_ANSWER:
        page = wait_for(partial(_answered_within_a_second, alice, place))

        assert (page.status, page.url) == (409, f"{hub.url}/hub/spawn/alice?_xsrf={alice.xsrf}")
        assert f"Error: {FULL.text}" in page.text
        assert "the form" in page.text


def _answered_within_a_second(person: Person, place: str) -> Page | None:
    """Send a form; return its page, or None if the hub was too slow and redirected."""
    began = time.monotonic()
    page = person.submit({"refuse": place})
    is_late = time.monotonic() - began > 1
    return None if is_late and "/hub/spawn-pending/" in page.url else page


def test_a_late_refusal_is_shown_by_the_progress_and_the_not_running_page(
    hub: RunningHub,
) -> None:
    alice = hub.person("alice")

    page = alice.submit({"refuse": "late"})

    assert page.url == f"{hub.url}/hub/spawn-pending/alice?_xsrf={alice.xsrf}"
    last = hub.events("alice")[-1]
    assert last["failed"]
    assert last["message"] == f"Spawn failed: {FULL.text}"
    assert last["html_message"] == FULL.html
    not_running = alice.open("/hub/spawn-pending/alice")
    assert not_running.status == 409
    assert FULL.html in not_running.html


@pytest.mark.parametrize("place", BY_REST)
def test_a_refusal_by_rest_is_a_client_error_in_json(hub: RunningHub, place: str) -> None:
    answer = hub.start("alice", {"refuse": place})

    assert answer.status_code == 409
    assert answer.json()["message"] == FULL.text
    assert not hub.server("alice")


def test_after_the_hub_s_answer_the_progress_stream_has_the_refusal(start_hub: StartHub) -> None:
    with start_hub(REFUSING + ANSWER_AT_ONCE + SLOW_AUTHENTICATOR) as hub:
        for place in BY_REST:
            user = f"refused-in-{place}"
            answer = hub.start(user, {"refuse": place})

            assert answer.status_code in {201, 202}
            assert hub.events(user)[-1]["message"] == f"Spawn failed: {FULL.text}"
            assert FULL.html in hub.person(user).open(f"/hub/spawn-pending/{user}").html


def test_five_failures_in_a_row_stop_the_hub_but_ten_refusals_do_not(start_hub: StartHub) -> None:
    with start_hub(REFUSING) as hub:
        _refuse_ten_times_and_more(hub)

        for _ in range(5):
            assert hub.start("bob", {"fail": "start"}).status_code == 500

        assert "Aborting due to 5 consecutive spawn failures" in hub.log
        wait_for(lambda: not hub.lives)


def _refuse_ten_times_and_more(hub: RunningHub) -> None:
    alice = hub.person("alice")
    for place in [*BEFORE_THE_ANSWER, "late"] * 2 + ["hook", "start"]:
        alice.submit({"refuse": place})
        assert (
            hub.start("bob", {"refuse": place if place in BY_REST else "start"}).status_code == 409
        )
        hub.events_end("alice")
    hub.start_until_ready("carol", {})
    hub.stop("carol")  # a hub that ends by itself leaves its servers running
    assert "consecutive spawn" not in hub.log


def test_forty_refusals_during_other_starts_do_not_stop_the_hub(hub: RunningHub) -> None:
    places = ["hook", "start", "late", "late"] * 10
    names = [f"refused-{number}" for number in range(40)]
    people = [hub.person(name) for name in names[:20]]

    with ThreadPoolExecutor(44) as at_once:
        started = [at_once.submit(hub.start, f"starts-{number}", {}) for number in range(3)]
        by_form = [
            at_once.submit(person.submit, {"refuse": place}, redirects=False)
            for person, place in zip(people, places, strict=False)
        ]
        by_rest = [
            at_once.submit(hub.start, name, {"refuse": place})
            for name, place in zip(names[20:], places[20:], strict=True)
        ]

    assert {page.result().status for page in by_form} <= {409, 302}
    assert {answer.result().status_code for answer in by_rest} == {409}
    assert {answer.result().status_code for answer in started} <= {201, 202}
    for number in range(3):
        hub.until_ready(f"starts-{number}")
    wait_for(lambda: hub.log.count("Not starting refused-") == len(names))
    assert "consecutive spawn" not in hub.log
    assert hub.lives


def test_a_refusal_is_one_log_line_without_a_traceback(hub: RunningHub) -> None:
    before = len(hub.log)
    alice = hub.person("alice")

    for place in [*BEFORE_THE_ANSWER, "late"]:
        alice.submit({"refuse": place})
        hub.events_end("alice")
        alice.open("/hub/spawn-pending/alice")
    for place in BY_REST:
        hub.start("bob", {"refuse": place})

    log = hub.log[before:]
    lines = [line for line in log.splitlines() if FULL.text in line]
    assert len(lines) == len([*BEFORE_THE_ANSWER, "late", *BY_REST])
    assert all("(busy)" in line for line in lines)
    assert "Traceback" not in log
    assert "NoneType: None" not in log
