"""Where a refusal is logged and shown; tests/hub/gates/test_refusals.py tests it in a hub."""

import logging
import re
from gettext import NullTranslations

import pytest
from jupyterhub import orm

from gpuspawner.messages import Message, OnForm
from gpuspawner.start import refusal as module
from gpuspawner.start import submitted_form
from gpuspawner.start.refusal import Refusal, reporting
from tests.unit.makers.translating import speaking


@pytest.fixture(autouse=True)
def info(caplog) -> None:
    caplog.set_level(logging.INFO)


@pytest.fixture
def refusal() -> Refusal:
    return Refusal(Message.of("100 % of the T4s are in use."), reason="busy")


def _is_kept(text: str, *args: object, error: BaseException | None = None) -> bool:
    exc_info = (type(error), error, None) if error else None
    record = logging.makeLogRecord({"msg": text, "args": args, "exc_info": exc_info})
    return bool(module._no_echo.filter(record))


def test_only_other_log_lines_about_a_refusal_are_dropped(refusal) -> None:
    assert not _is_kept("It failed", error=refusal)
    assert not _is_kept(f"Error starting alice's server: {refusal}")
    assert not _is_kept("Error starting %s's server: %s", "alice", refusal)
    assert not _is_kept("%d %s: %s", 409, "POST /hub/spawn", refusal.get_message())
    assert _is_kept("Not starting %s (%s): %s", "alice", "busy", refusal.text)
    assert _is_kept(refusal.text)


@pytest.mark.each_python
def test_a_log_record_that_cannot_be_formatted_raises_nothing(refusal) -> None:
    assert _is_kept("%d of %d", 1), refusal


def test_the_hub_shows_users_only_the_message(refusal) -> None:
    assert str(refusal) == refusal.text == refusal.jupyterhub_message
    assert refusal.get_message() == refusal.text
    assert refusal.status_code == 409


def test_a_server_s_name_adds_no_log_line(hub_with, caplog) -> None:
    """JupyterHub 5 takes any name; 6 refuses such names."""
    spawner = hub_with().spawner()
    spawner.orm_spawner = orm.Spawner(name="lab\r\n[I] Starting bob\x1b[31m\u2028\u202e")

    with pytest.raises(Refusal), reporting(spawner):
        raise Refusal(Message.of("It is in use."), reason="busy")

    [line] = caplog.messages
    assert line == "Not starting alice:lab [I] Starting bob [31m (busy): It is in use."


SAID = "lab\r\n[I] Starting bob\x1b[31m\u2028\u202e"


@pytest.mark.parametrize("refused", [
    Refusal(Message.of(f"You're using 1: {SAID}"), reason="limit"),
    Refusal(Message.of("It crashed."), reason="crashed", details=SAID + "x" * 100_000),
], ids=["the name of another server", "what a container has written"])  # fmt: skip
def test_what_users_write_adds_no_log_line(refused, hub_with, caplog) -> None:
    with pytest.raises(Refusal), reporting(hub_with().spawner()):
        raise refused

    [line] = caplog.messages
    assert "lab [I] Starting bob [31m" in line
    assert line.isprintable()
    assert len(line) < 6000


def test_the_log_has_all_that_a_container_may_leave(hub_with, caplog) -> None:
    said = f"{'x' * 4000}\nImportError"
    with pytest.raises(Refusal), reporting(hub_with().spawner()):
        raise Refusal(Message.of("It crashed."), reason="crashed", details=said)

    assert caplog.messages[0].endswith("x ImportError]")


def test_only_the_log_shows_the_details(hub_with, caplog) -> None:

    with pytest.raises(Refusal) as raised, reporting(hub_with().spawner()):
        raise Refusal(Message.of("It is in use."), reason="busy", details="of 4 nodes, 3 are full")

    assert caplog.messages == ["Not starting alice (busy): It is in use. [of 4 nodes, 3 are full]"]
    assert "nodes" not in str(raised.value)


async def test_a_refusal_that_leaves_several_gates_is_reported_once(
    refusal, hub_with, caplog
) -> None:
    spawner = hub_with().spawner()

    with pytest.raises(Refusal), reporting(spawner), reporting(spawner):
        raise refusal

    assert caplog.messages == ["Not starting alice (busy): 100 % of the T4s are in use."]


async def test_the_form_shows_its_own_message_if_there_is_one(refusal, hub_with) -> None:
    spawner, draft = hub_with().spawner(), submitted_form.keep({})
    shown = OnForm(Message.of("None is free."))

    for refused, on_form in (
        (refusal, OnForm(Message.of("100 % of the T4s are in use."))),
        (Refusal(Message.of("It is in use."), reason="busy", on_form=shown), shown),
    ):
        with pytest.raises(Refusal), reporting(spawner):
            raise refused

        assert draft.refused == on_form


async def test_the_form_leads_to_the_page_that_explains_the_reason(refusal, hub_with) -> None:
    spawner, draft = hub_with().spawner(), submitted_form.keep({})
    spawner.messages_url = 'https://docs.example.org/users.html?"'

    with pytest.raises(Refusal), reporting(spawner):
        raise refusal

    assert draft.refused.message.text == refusal.text
    # The hub's colour of links isn't readable on a warning.
    link = '<a class="text-reset" href="https://docs.example.org/users.html?&#34;#busy"'
    assert link in draft.refused.message.html


PAGES = {"en": "/users.html", "zh-CN": "/users.zh-CN.html"}


@pytest.mark.parametrize(
    ("tag", "pages", "expected"),
    [
        ("zh-CN", PAGES, "/users.zh-CN.html#busy"),
        ("en", PAGES, "/users.html#busy"),
        ("de", PAGES, "/users.html#busy"),
        ("de", {"zh-CN": "/users.zh-CN.html"}, None),
        ("zh-CN", "/users.html", "/users.html#busy"),
    ],
)
async def test_the_page_is_in_the_reader_s_language_or_in_english(
    tag, pages, expected, refusal, hub_with
) -> None:
    spawner, draft = hub_with().spawner(), submitted_form.keep({})
    spawner.messages_url = pages

    with speaking(tag, NullTranslations()), pytest.raises(Refusal), reporting(spawner):
        raise refusal

    assert re.findall('href="(.*?)"', draft.refused.message.html) == [expected] * bool(expected)


def test_other_exceptions_are_not_reported(hub_with, caplog) -> None:

    with pytest.raises(ZeroDivisionError), reporting(hub_with().spawner()):
        raise ZeroDivisionError

    assert caplog.messages == []
