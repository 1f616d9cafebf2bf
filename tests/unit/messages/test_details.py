"""What Kubernetes says, beside our sentence."""

import pytest

from gpuspawner.messages import (
    Message,
    said_before,
    with_details,
    with_details_in_log,
    with_line_page,
    with_way_back,
)

DOWNLOADING = Message.of("Downloading.")


@pytest.mark.parametrize("add", [with_details, with_details_in_log])
def test_what_kubernetes_says_is_one_click_away_and_stays_text(add):
    texts = ('Failed to pull image "<script>alert(1)</script>"', "second")
    message = add(DOWNLOADING, texts)

    assert message.text == "Downloading."
    assert message.html.startswith("<strong>Downloading.</strong><details class=")
    assert "<script>" not in message.html
    assert "&lt;script&gt;" in message.html
    assert "<br>second</code>" in message.html


@pytest.mark.parametrize("texts", [(), ("",)])
def test_nothing_said_is_nothing_to_open(texts):
    assert with_details(DOWNLOADING, texts) == DOWNLOADING


def test_what_is_said_again_and_again_is_shown_once():
    assert with_details(DOWNLOADING, ["Back-off"] * 9).html.count("Back-off") == 1


def test_a_flood_shows_its_newest_texts_each_of_bounded_length():
    html = with_details(DOWNLOADING, (f"{number}-{'x' * 9000}" for number in range(999))).html
    assert "998-x" in html
    assert "978-x" not in html
    assert len(html) < 45_000


def test_the_lines_of_a_log_stay_lines():
    assert (
        "<code>Traceback<br>File &lt;x&gt;</code>"
        in with_details(DOWNLOADING, ["Traceback\n  File <x>\n"]).html
    )


def test_a_long_text_is_whole():
    assert "y" in with_details(DOWNLOADING, ["x " * 500 + "y"]).html.partition("<code>")[2]


def test_the_way_back_is_a_link_that_stays_in_its_attribute():
    message = with_way_back(DOWNLOADING, '/hub/spawn/"onclick=')
    assert message.text == "Downloading."
    assert 'href="/hub/spawn/&#34;onclick="' in message.html


def test_the_page_of_a_wait_leads_to_the_line_and_programs_read_the_place_alone():
    message = with_line_page(Message.of("You are next."), "Stay <here>.", '/hub/"onclick=')

    assert message.text == "You are next."
    assert 'href="/hub/&#34;onclick="' in message.html
    assert "Stay &lt;here&gt;." in message.html


def test_what_is_repeated_hides_the_same_of_the_page_as_before():
    """The styles of a wait mustn't depend on how deep the message lies in the page."""
    html = said_before(with_line_page(Message.of("You are next."), "", "/")).html
    assert "#progress-message>.gpuspawner-line" not in html
    assert "p:has(~#progress-message .gpuspawner-line)" in html
