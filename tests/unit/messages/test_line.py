"""What people in line read."""

import pytest

from gpuspawner.line.usual_waits import UsualWait
from gpuspawner.messages.line import (
    in_line,
    may_go,
    stay_here,
    waits_already,
    waits_for_a_limit,
    waits_in_line,
)
from gpuspawner.messages.on_form import would_be
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.types import Accelerator

A100 = Grant(Accelerator("a100", "NVIDIA A100", "nvidia.com/gpu", counts=(1, 2)), 2)
NO_GPU = Grant(None, 0)


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (1, "You would be the first in line."),
        (2, "1 person would be ahead of you."),
        (13, "12 people would be ahead of you."),
    ],
)
def test_the_form_says_the_place_that_one_would_have(place, text):
    assert would_be(place) == text


@pytest.mark.parametrize(
    ("place", "lead"),
    [
        (1, "You are next in line."),
        (2, "You are in line: 1 person is ahead of you."),
        (13, "You are in line: 12 people are ahead of you."),
    ],
)
def test_who_waits_reads_the_place_first_and_what_it_is_for(place, lead):
    said = in_line(place, A100)
    assert said.text == f"{lead} You are waiting for 2 × NVIDIA A100."
    assert said.html.startswith(f"<strong>{lead}</strong>")


def test_a_server_without_a_gpu_is_waited_for_as_such():
    assert in_line(1, NO_GPU).text.endswith("You are waiting for a server without a GPU.")


def test_a_profile_is_waited_for_by_its_name():
    t4 = Grant(Accelerator("t4", "GPU", "nvidia.com/gpu", counts=(1,)), 1)

    assert in_line(1, t4, "<T4>").text.endswith("You are waiting for “<T4>” (1 × GPU).")
    assert in_line(1, t4, "<T4>").html.endswith("You are waiting for “&lt;T4&gt;” (1 × GPU).")
    assert in_line(1, NO_GPU, "CPU").text.endswith("You are waiting for “CPU”.")
    assert "You are waiting for “T4” (1 × GPU)." in waits_for_a_limit("No.", 1, t4, "T4").text


@pytest.mark.parametrize(
    ("low", "high", "time"),
    [
        (0, 1, "a minute at most"),
        (0, 15, "15 minutes at most"),
        (1, 2, "1 to 2 minutes"),
        (10, 40, "10 to 40 minutes"),
        (60, 119, "60 to 119 minutes"),
        (0, 150, "3 hours at most"),
        (50, 121, "50 minutes to 3 hours"),
        (120, 121, "2 to 3 hours"),
        (179, 600, "2 to 10 hours"),
    ],
)
def test_a_range_is_told_in_minutes_or_hours_with_whose_waits_it_is(low, high, time):
    told = f"In the last 7 days, eight of ten people who waited for this waited {time}."
    assert in_line(1, A100, usual=UsualWait(low, high, 7)).text.endswith(f"A100. {told}")


def test_the_last_day_is_told_without_a_number():
    assert "A100. In the last day, eight of ten" in in_line(1, A100, usual=UsualWait(1, 2, 1)).text


@pytest.mark.parametrize(
    ("idle", "text"),
    [
        (1, "1 server with what you're waiting for hasn't been used for a while."),
        (3, "3 servers with what you're waiting for haven't been used for a while."),
    ],
)
def test_idle_servers_are_told_by_their_number(idle, text):
    assert in_line(1, A100, idle=idle).text.endswith(f"A100. {text}")


@pytest.mark.parametrize(
    ("kept", "text"),
    [
        (1, "1 GPU is already being kept free for you."),
        (3, "3 GPUs are already being kept free for you."),
    ],
)
def test_who_collects_is_told_how_many_gpus_are_kept(kept, text):
    assert in_line(1, A100, kept=kept).text.endswith(f"A100. {text}")


def test_the_page_says_how_long_it_may_be_closed():
    assert stay_here(900).endswith("your place is kept for 15 minutes.")
    assert stay_here(5400).endswith("your place is kept for 1 hour and 30 minutes.")
    assert may_go().startswith("You can close this page")


def test_who_has_all_places_reads_how_many():
    assert "for 1 server." in waits_already(1).text
    assert "for 3 servers." in waits_already(3).text


def test_names_and_addresses_stay_text_on_the_home_page():
    assert waits_in_line("<b>", '/hub/"onclick=') == (
        "<strong>&lt;b&gt;</strong> waits in line. "
        '<a class="text-reset" href="/hub/&#34;onclick=">Your place in line</a>'
    )
    assert "Your default server" in waits_in_line("", "/hub/line")
