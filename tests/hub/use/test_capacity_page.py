"""The page that says what becomes of many servers: who may ask, and what it answers."""

import json
import re
from html import unescape

import pytest
import requests

from tests.hub.lines import WAITING, a_hub_in_use
from tests.hub.running import API_TOKEN
from tests.hub.use.test_gpus_page import CONFIGURATION, NODES, PEOPLE, SEES_NAMES
from tests.waiting import wait_for

ONE = {"accelerator": "t4", "gpus": 1}


@pytest.fixture
def hub(
    kept_hub,
    add_nodes,
    cluster,  # noqa: ARG001
):
    """A hub in which ann has 2 of 4 GPUs."""
    add_nodes(NODES)
    hub = kept_hub(CONFIGURATION)
    hub.api("POST", "/groups/vision-course", {"users": []})
    hub.start_until_ready("ann", {"accelerator": "t4", "gpus": 2})
    yield hub
    hub.api("DELETE", "/groups/vision-course/users", {"users": ["ann"]})


def ask(person, **fields):
    page = f"{person.hub.url}/hub/gpuspawner/gpus/capacity"
    return person.session.get(page, params=fields)


def answer(hub, offer, servers, group=""):
    """Return the rows and the remarks of an answer to an administrator."""
    sent = ask(hub.person("admin"), offer=json.dumps(offer), servers=servers, group=group)
    assert sent.status_code == 200, sent.text
    html = sent.content.decode()
    html = html[html.index("</form>") :]
    rows = re.findall(r'<td class="gpus-number">(\d+)</td><td>(.*?)</td>', html)
    said = re.findall(r"<p(?: [^>]*)?>(.*?)</p>", html[: html.rindex("</main>")])
    return [unescape(it) for it in (*(" ".join(row) for row in rows), *said)]


@pytest.mark.each_hub
def test_it_says_how_many_start_and_what_the_others_lack(hub):
    found = answer(hub, ONE, 3)

    assert found[:2] == [
        "2 start on the nodes that exist",
        "1 find no room: each asks for 1 GPU, and no node that takes them has more than 0",
    ]
    assert answer(hub, {"accelerator": "t4", "gpus": 2}, 1)[0] == "1 start on the nodes that exist"
    assert answer(hub, {"accelerator": None}, 4)[0] == "4 start on the nodes that exist"


def test_the_limits_of_a_group_count_one_server_for_each_member(hub):
    hub.api("POST", "/groups/vision-course/users", {"users": ["ann"]})

    expected = ["1 start on the nodes that exist", "4 aren't allowed"]
    # The hub reads members anew after some seconds.
    wait_for(lambda: answer(hub, ONE, 5, "vision-course")[:2] == expected)
    found = answer(hub, ONE, 5, "vision-course")
    assert "The policy course allows 1. It says: " in found[2]
    assert "This hub knows no group" not in " ".join(found)
    assert "This hub knows no group “vision-curse”." in answer(hub, ONE, 2, "vision-curse")


def test_who_asks_takes_nothing_from_anybody(hub):
    for _ in range(3):
        answer(hub, ONE, 1000, "vision-course")

    admin = hub.person("admin")
    uses_none = re.compile(r"vision-course</th><td>course</td><td>0</td>")
    wait_for(lambda: uses_none.search(admin.open("/hub/gpuspawner/gpus").html))
    hub.start_until_ready("bob", {"accelerator": "t4", "gpus": 2})
    assert {user["name"] for user in hub.api("GET", "/users").json()} >= {"ann", "bob"}
    assert "gpuspawner" not in {user["name"] for user in hub.api("GET", "/users").json()}


def test_only_who_sees_names_may_ask(hub):
    for name in PEOPLE:
        person = hub.person(name)
        person.open("/hub/home")
        sent = ask(person, offer=json.dumps(ONE), servers=1)
        assert sent.status_code == (200 if name in SEES_NAMES else 403), name
        refused = "Only people who are allowed to see all servers can open this page." in sent.text
        assert refused == (name not in SEES_NAMES), name
        link = "/hub/gpuspawner/gpus/capacity" in person.open("/hub/gpuspawner/gpus").html
        assert link == (name in SEES_NAMES), name
    for headers in ({}, {"Authorization": f"token {API_TOKEN}"}):
        url = f"{hub.url}/hub/gpuspawner/gpus/capacity"
        sent = requests.get(url, headers=headers, allow_redirects=False, timeout=10)
        assert sent.headers["Location"].startswith("/hub/login?next=")


def test_it_says_that_those_in_line_are_not_considered(
    kept_hub,
    add_nodes,
    cluster,  # noqa: ARG001
):
    hub = a_hub_in_use(kept_hub, add_nodes, "c.GPUSpawner.gpu_use = True\n")
    nobody_waits = answer(hub, ONE, 1)
    hub.start("bob", WAITING)

    said = "This page doesn't consider servers that wait in line."
    assert said not in " ".join(nobody_waits)
    assert answer(hub, ONE, 1)[1:3] == ["1 server waits in line.", said]
    hub.stop("bob")


@pytest.mark.parametrize("servers", ["0", "1001", "-1", "1e3", "٣", "99999999", "x"])
def test_a_number_that_is_not_allowed_is_named(hub, servers):
    assert answer(hub, ONE, servers) == ["How many: a number from 1 to 1000 is allowed."]


@pytest.mark.parametrize(
    "offer", ["<script>alert(1)</script>", "{", '{"accelerator": ["t4"]}', "[" * 1000, "\x1b[2J"]
)
def test_what_is_not_on_offer_is_said_and_escaped(hub, offer):
    sent = ask(hub.person("admin"), offer=offer, servers=1, group='"><script>')

    assert sent.status_code == 200
    assert 'role="alert"' in sent.text
    assert "<script>alert" not in sent.text
    assert '"><script>' not in sent.text
    # The field doesn't show another server than the one that is answered about.
    chosen = re.findall(r'<option value="(.*?)" selected>', sent.content.decode())
    assert [unescape(it) for it in chosen] == [offer.strip("\x1b")]  # as tornado does


def test_the_name_that_a_refusal_gives_a_server_without_a_gpu_can_be_asked_for(hub):
    admin = hub.person("admin")

    assert "Choose t4 or null for no GPU." in ask(admin, offer="x", servers=1).text
    assert "1</td><td>start on the nodes that exist" in ask(admin, offer="null", servers=1).text


def test_why_there_is_no_answer_is_told_in_the_reader_s_language(hub):
    admin = hub.person("admin")
    admin.session.headers["Accept-Language"] = "zh-CN"

    assert "这些选项不是 JSON：" in ask(admin, offer="{", servers=1).content.decode()


def test_a_hub_with_profiles_offers_them(start_gpu_hub, cluster):  # noqa: ARG001
    profiles = [
        {"display_name": "R&D <b>", "slug": "small", "kubespawner_override": {"cpu_limit": 1}},
        {"display_name": "Large", "kubespawner_override": {"extra_resource_limits": {"x/y": "1"}}},
    ]
    given = f"c.GPUSpawner.gpu_use = True\nc.KubeSpawner.profile_list = {profiles!r}\n"
    with start_gpu_hub(given) as hub:
        html = ask(hub.person("admin"), offer="large", servers=2).content.decode()

    assert re.findall(r'<option value="(\w+)"( selected)?>(.*?)</option>', html) == [
        ("small", "", "R&amp;D"),
        ("large", " selected", "Large"),
    ]
    assert "2</td><td>find no room: " in html


def test_profiles_that_cannot_be_listed_are_said(
    start_gpu_hub,
    cluster,  # noqa: ARG001
):
    given = "c.GPUSpawner.gpu_use = True\nc.KubeSpawner.profile_list = lambda it: it.user.wrong\n"
    with start_gpu_hub(given) as hub:
        html = ask(hub.person("admin"), offer="large", servers=2).content.decode()

    assert re.search('role="alert">.*profile_list.*</p>', html), html


OWN_CLASS = """
from kubespawner import KubeSpawner
class OurSpawner(KubeSpawner):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.mail = self.user and f"{self.user.orm_user.name}@example.org"
c.JupyterHub.spawner_class = OurSpawner
"""


def test_a_class_that_needs_a_user_who_exists_is_said(
    start_gpu_hub,
    cluster,  # noqa: ARG001
):
    with start_gpu_hub(f"c.GPUSpawner.gpu_use = True\n{OWN_CLASS}") as hub:
        html = ask(hub.person("admin"), offer="t4", servers=2).content.decode()

    assert re.search('role="alert">OurSpawner: AttributeError.*orm_user.*</p>', html), html
