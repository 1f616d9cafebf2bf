"""How the end of a server is told: why, when, and what its owner can do."""

from datetime import UTC, datetime, timedelta

import pytest

from gpuspawner.messages import ends_in, last_server_ended, mishap, server_ended
from gpuspawner.troubles.ending import Ending, Mishap
from gpuspawner.troubles.trouble import Kind

NOW = datetime(2026, 11, 21, 20, 30, tzinfo=UTC)
AGAIN = "Please start your server again; it may get another machine."
GIB = 2**30


ENDINGS = {
    f"Your last server ended because its machine was lost. {AGAIN}": Ending(Kind.NODE_LOST, NOW),
    (
        "Your last server ended because it had to make room for one with a higher "
        f"priority. That was 2 hours ago. {AGAIN}"
    ): Ending(Kind.PREEMPTED, NOW - timedelta(hours=2)),
    (
        "Your last server ended because it took more than its 16 GiB of memory. Please "
        "choose more memory, or ask your administrator."
    ): Ending(Kind.OUT_OF_MEMORY, NOW, memory=16 * GIB),
    (
        "Your last server ended because it took more memory than it had. Please choose "
        "more memory, or ask your administrator."
    ): Ending(Kind.OUT_OF_MEMORY, NOW, last_words="[I 20:30 ServerApp] Saving file"),
    "Your last server ended after 2 hours, the longest that it is allowed to run.": Ending(
        Kind.DEADLINE, NOW, seconds=7200
    ),
    (
        "Your last server crashed. The last line of its log: “No {server}”. Please start "
        "it again, and tell your administrator if it ends again."
    ): Ending(Kind.CRASHED, NOW, last_words="\nTraceback:\nNo {server}\n\x00\n"),
    (
        "Your last server ended because an administrator stopped it. Please ask them why "
        "before you start it again."
    ): Ending(Kind.STOPPED, NOW),
    (
        "Your last server didn't start, because the hub was restarted meanwhile. Please "
        "start it again."
    ): Ending(Kind.HUB_RESTARTED, NOW),
}


@pytest.mark.parametrize(("text", "ending"), ENDINGS.items())
def test_an_ending_is_told_with_its_cause_and_the_way_out(text, ending):
    assert last_server_ended(ending, NOW) == text


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_can_be_told_and_tells_a_way_out(kind):
    told = last_server_ended(Ending(kind, NOW, seconds=60), NOW)

    assert not told or told.startswith("Your last server ")
    assert not told or "Please" in told or kind is Kind.DEADLINE


def test_whoever_ends_a_server_from_inside_is_told_nothing():
    assert last_server_ended(Ending(Kind.ENDED, NOW), NOW) == ""
    assert server_ended(Ending(Kind.ENDED, NOW), NOW, "train") == ""


def test_other_pages_name_the_server_and_show_markup_as_text():
    ending = Ending(Kind.CRASHED, NOW, last_words="<script>")

    assert server_ended(ending, NOW, "<b>") == (
        "<strong>&lt;b&gt;</strong> crashed. The last line of its log: “&lt;script&gt;”. Please "
        "start it again, and tell your administrator if it ends again."
    )
    assert server_ended(ending, NOW, "").startswith("<strong>Your default server</strong> ")


MISHAPS = {
    (
        "<strong>train</strong> is on a machine that doesn&#39;t answer any more. Wait "
        "until it does, or stop the server and start it again elsewhere."
    ): Mishap(Kind.NODE_LOST),
    (
        "<strong>train</strong> is on a machine with a broken GPU. Save your work, stop "
        "the server, and start it again elsewhere."
    ): Mishap(Kind.DEVICE_BROKEN),
    (
        "<strong>train</strong> was restarted because it took more than its 2 GiB of "
        "memory. That was 5 minutes ago. Please choose more memory, or ask your "
        "administrator."
    ): Mishap(Kind.OUT_OF_MEMORY, NOW - timedelta(minutes=5), 2 * GIB),
    (
        "<strong>train</strong> was restarted because it took more memory than it has. "
        "Please choose more memory, or ask your administrator."
    ): Mishap(Kind.OUT_OF_MEMORY, NOW),
    (
        "<strong>train</strong> was restarted because it crashed. "
        "Tell your administrator if it happens again."
    ): Mishap(Kind.CRASHED, NOW),
}


@pytest.mark.parametrize(("text", "found"), MISHAPS.items())
def test_what_has_happened_to_a_server_that_is_up_is_told(text, found):
    assert mishap(found, "train", NOW) == text


@pytest.mark.parametrize(("left", "time"), [(5400, "1 hour and 30 minutes"), (29, "1 minute")])
def test_a_server_that_ends_in_seconds_does_not_end_in_0_minutes(left, time):
    text = f"<strong>lab</strong> ends in {time}. Save your work before then."

    assert ends_in("lab", left) == text
