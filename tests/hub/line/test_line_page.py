"""The page of the line, as its owner, other users and administrators reach it."""

import pytest
import requests

from tests.hub.lines import HOLDER, NEXT, a_hub_without_room, told, wait_in_line


@pytest.fixture
def hub(kept_hub, add_nodes, cluster):
    """A hub with one GPU, which somebody has; Bob is next in line."""
    hub = a_hub_without_room(kept_hub, add_nodes, cluster)
    wait_in_line(hub, "bob", NEXT)
    return hub


def waits(hub, user):
    return hub.server(user).get("pending") == "spawn" and not hub.server(user).get("ready")


def page_of(person, owner, server=""):
    return person.session.get(f"{person.hub.url}/hub/gpuspawner/line/{owner}/{server}")


def press(person, owner, **fields):
    """Press a button of the page, as a browser does."""
    url = f"{person.hub.url}/hub/gpuspawner/line/{owner}/"
    sent = {"_xsrf": person.xsrf, **fields}
    return person.session.post(url, data=sent, headers={"Referer": url}, allow_redirects=False)


def test_the_page_says_the_place_and_is_never_kept(hub):
    answer = page_of(hub.person("bob"), "bob")

    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-store"
    assert NEXT in answer.content.decode()
    assert "Start without a GPU" in answer.text


@pytest.mark.each_hub
def test_who_leaves_by_the_page_has_no_place(hub):
    bob = hub.person("bob")
    answer = press(bob, "bob")

    assert (answer.status_code, answer.headers["Location"]) == (302, "/hub/spawn/bob/".rstrip("/"))
    assert not hub.server("bob")
    assert "You have left the line." in bob.open("/hub/spawn/bob").text


def test_who_has_logged_out_is_led_to_the_login(hub):
    url = f"{hub.url}/hub/gpuspawner/line/bob/"

    answer = requests.get(url, allow_redirects=False, timeout=10)

    assert answer.status_code == 302
    assert answer.headers["Location"].startswith("/hub/login?next=")


def test_an_administrator_sees_the_page_and_can_leave_for_the_owner(hub):
    admin = hub.person("admin")
    assert NEXT in page_of(admin, "bob").content.decode()

    assert press(admin, "bob").status_code == 302
    assert not hub.server("bob")


NOT_ON_OFFER = [
    "accelerator=t4&gpus=1",  # nothing of it is free
    "accelerator=t4&gpus=999999999999999999999",
    "accelerator=&gpus=0&wait=1",
    "<script>alert(1)</script>",
    "\r\nLocation: https://example.org/",
    "&" * 5000,
]


def test_what_isnt_on_offer_instead_keeps_the_place(hub, subtests):
    bob = hub.person("bob")
    for instead in NOT_ON_OFFER:
        with subtests.test(instead[:30]):
            answer = press(bob, "bob", **{"gpuspawner-instead": instead})

            assert answer.status_code == 302
            assert answer.headers["Location"] == "/hub/gpuspawner/line/bob/"
            assert waits(hub, "bob")
            assert told(hub, "bob") == NEXT


def test_who_doesnt_wait_is_led_to_the_form(hub):
    dave = hub.person("dave")
    for answer in (page_of(dave, "dave"), press(dave, "dave")):
        if answer.is_redirect:
            assert answer.headers["Location"] == "/hub/spawn/dave"
        else:
            assert answer.url.endswith("/hub/spawn/dave")
    assert not hub.server("dave")


MISSING = ["nothing", "%3Cscript%3Ealert(1)%3C%2Fscript%3E", "..%2F..%2Fbob", "%00", "x" * 999]


def test_a_server_that_isnt_there_is_not_found_nor_made(hub, subtests):
    bob = hub.person("bob")
    for server in MISSING:
        with subtests.test(server[:30]):
            answer = page_of(bob, "bob", server)

            assert answer.status_code in {400, 404}
            assert "<script>alert" not in answer.text
            assert list(hub.api("GET", "/users/bob").json()["servers"]) == [""]


@pytest.mark.each_hub
def test_the_home_page_leads_to_the_page_of_the_line(hub):
    home = hub.person("bob").open("/hub/home")
    assert "Your default server waits in line. Your place in line" in home.text
    assert 'href="/hub/gpuspawner/line/bob/"' in home.html


def test_a_server_that_is_called_meanwhile_isnt_left(hub):
    bob = hub.person("bob")
    hub.pods.cluster.api.delete(HOLDER, grace=0)
    hub.until_ready("bob")

    assert press(bob, "bob").headers["Location"] == "/hub/spawn/bob"
    assert hub.server("bob")["ready"]
