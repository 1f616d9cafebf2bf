"""What the pages say of a start that failed after the click."""

import asyncio
from types import SimpleNamespace
from weakref import WeakKeyDictionary

import pytest
from jupyterhub import orm
from tornado import web

from gpuspawner.launch import failed_starts
from gpuspawner.messages import Message, OnForm
from gpuspawner.start import submitted_form
from gpuspawner.start.refusal import Refusal


class Said(Exception):  # noqa: N818, named by what it does
    """An administrator's own exception, with a message for users."""

    jupyterhub_message = "Ask Kim."


@pytest.fixture
def spawner():
    hub = SimpleNamespace(base_url="/base/hub/")
    row = orm.Spawner(name="")
    return SimpleNamespace(user=SimpleNamespace(name="a/b"), name="", hub=hub, orm_spawner=row)


@pytest.fixture
def failed():
    return WeakKeyDictionary()


def fail(spawner, failed, error):
    with pytest.raises(type(error)) as raised, failed_starts.explaining(spawner, failed):
        raise error
    return raised.value


FULL = Message.of("The disk is full.", "Please.")


def test_a_refusal_leads_back_and_is_told_on_the_next_form(spawner, failed):
    refusal = fail(spawner, failed, Refusal(FULL, reason="disk-full"))

    assert refusal.jupyterhub_message == "The disk is full. Please."
    assert refusal.jupyterhub_html_message.startswith("<strong>The disk is full.</strong> Please.")
    assert 'href="/base/hub/spawn/a%2Fb"' in refusal.jupyterhub_html_message
    told = "Your last start failed: The disk is full. Please."
    assert failed_starts.last_failure(spawner, failed) == told

    failed_starts.forget(spawner, failed)
    assert failed_starts.last_failure(spawner, failed) == ""


def test_the_next_form_repeats_nothing_that_was_free_at_the_refusal(spawner, failed):
    shown = OnForm(Message.of("All are in use."))
    refused = Refusal(Message.of("All are in use.", "Take a T4."), reason="busy", on_form=shown)

    assert fail(spawner, failed, refused).jupyterhub_message == "All are in use. Take a T4."
    assert failed_starts.last_failure(spawner, failed) == "Your last start failed: All are in use."


async def test_a_form_that_shows_the_refusal_itself_does_not_say_it_twice(spawner, failed):
    fail(spawner, failed, Refusal(FULL, reason="disk-full"))
    submitted_form.keep({})
    assert failed_starts.last_failure(spawner, failed)
    submitted_form.refuse(OnForm(FULL))
    assert failed_starts.last_failure(spawner, failed) == ""


@pytest.mark.parametrize("is_answered", [True, False])
async def test_a_late_refusal_is_told_on_the_next_form_unless_its_own_form_says_it(
    spawner, failed, is_answered
):
    draft = submitted_form.keep({})
    if is_answered:
        draft.request = asyncio.create_task(asyncio.sleep(0))
        await draft.request

    with pytest.raises(Refusal), failed_starts.explaining_late(spawner, failed):
        raise Refusal(Message.of("It's taken."), reason="busy")

    assert bool(failed_starts.last_failure(spawner, failed)) is is_answered


async def test_a_late_end_of_a_wait_is_told_as_it_is(spawner, failed):
    draft = submitted_form.keep({})
    draft.request = asyncio.create_task(asyncio.sleep(0))
    await draft.request

    with (
        pytest.raises(Refusal),
        failed_starts.explaining_late(spawner, failed),
        failed_starts.explaining(spawner, failed, str),
    ):
        raise Refusal(Message.of("You have left the line."), reason="left-line")

    assert failed_starts.last_failure(spawner, failed) == "You have left the line."


@pytest.mark.parametrize("error", [TimeoutError("pod x did not start"), ValueError("<b>")])
def test_an_unforeseen_error_is_explained_without_its_words(spawner, failed, error):
    raised = fail(spawner, failed, error)
    assert raised is error
    assert raised.jupyterhub_message == (
        "Your server couldn't start because of an error. "
        "Please tell your administrator. The hub's log has the details."
    )
    assert str(error) not in raised.jupyterhub_html_message
    assert failed_starts.last_failure(spawner, failed)


@pytest.mark.parametrize("error", [Said(), web.HTTPError(403, "Not today.")])
def test_what_an_administrator_s_hook_says_stays(spawner, failed, error):
    raised = fail(spawner, failed, error)
    assert "jupyterhub_html_message" not in vars(raised)
    assert failed_starts.last_failure(spawner, failed) == ""


def test_who_gets_the_name_of_a_deleted_user_reads_nothing_of_it(spawner, failed):
    fail(spawner, failed, Refusal(FULL, reason="disk-full"))
    again = SimpleNamespace(**vars(spawner))
    assert failed_starts.last_failure(again, failed)  # as the hub makes it after a failure

    new = SimpleNamespace(**{**vars(spawner), "orm_spawner": orm.Spawner(name="")})
    assert failed_starts.last_failure(new, failed) == ""
