"""The hub's additional endpoints and who may use them, and the form's alternative buttons."""

import pytest

from localcluster import Fleet, NodeGroup
from tests.hub.people import Person
from tests.waiting import wait_for

OFFERED = """
c.JupyterHub.allow_named_servers = True
c.GPUSpawner.accelerators = {"t4": {
    "display_name": "Tesla T4", "counts": [1, 2, 4], "node_selector": {"gpu": "web-t4"}}}
c.GPUSpawner.memory_choices = ["1Gi", "16Gi", "64Gi"]
c.GPUSpawner.queue = True
"""
SCOPES = {
    "reader": "read:servers",
    "visitor": "access:servers",
    "culler": "delete:servers",
    "assistant": "servers!server=ann/",
    "teacher": "servers",
}
"""What others may do with Ann's default server, by a role of their own."""
ROLES = f"""
c.JupyterHub.load_roles += [
    {{"name": f"the-{{name}}s", "users": [name], "scopes": [scope]}}
    for name, scope in {SCOPES}.items()
]
"""
STARTERS = {"assistant", "teacher"}
STOPPERS = {"assistant", "teacher", "culler"}
ENDPOINTS = [
    ("GET", "states/ann/", STARTERS),
    ("GET", "stream/ann/", STARTERS),
    ("POST", "decision/ann/", STARTERS),
    ("GET", "schema/ann/", STARTERS),
    ("GET", "line/ann/", STARTERS),
    ("POST", "line/ann/", STOPPERS),
    ("POST", "stop/ann/", STOPPERS),
]
"""Each endpoint about a server, and whom it answers."""
PAGE = ("GET", "line/ann/")
"""A page that is opened by its address: it leads to the login, and needs no token."""
WITH_A_TOKEN = [it[:2] for it in ENDPOINTS if it[:2] != PAGE]
T4 = NodeGroup(
    "web-t4",
    1,
    {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "2"},
    labels={"gpu": "web-t4"},
)


@pytest.fixture
def hub(kept_hub, add_nodes):
    add_nodes(Fleet((T4,)))
    return kept_hub(OFFERED + ROLES)


@pytest.fixture
def ann(hub):
    return hub.person("ann")


@pytest.fixture
def others(hub, ann):  # noqa: ARG001, the server is hers
    """People with rights to Ann's server, and Bob, who has none."""
    return [hub.person(name) for name in (*SCOPES, "bob")]


def ask(person, path, body=None, **headers):
    """Ask as the form's script does."""
    person.open("/hub/home")
    sent = {"Sec-Fetch-Mode": "cors", "X-XSRFToken": person.xsrf, **headers}
    url = f"{person.hub.url}/hub/gpuspawner/{path}"
    if body is None:
        return person.session.get(url, headers=sent)
    return person.session.post(url, json=body, headers=sent)


def test_an_open_form_can_ask_for_the_availability(ann):
    answer = ask(ann, "states/ann/")

    assert answer.headers["Cache-Control"] == "no-store"
    t4, none = answer.json()["accelerators"]
    assert (t4["accelerator"], t4["state"], t4["word"]) == ("t4", "free", "Free")
    assert (t4["gpus"]["free"], t4["gpus"]["most_free"], t4["gpus"]["total"]) == (2, 2, 2)
    assert t4["machines"]["whole"] == [{"gpus": 2, "memory": 32 * 2**30, "cpu": 8000}]
    assert none["accelerator"] is None


def test_no_browser_takes_data_for_a_page_or_a_script(ann):
    answers = [ask(ann, it) for it in ("states/ann/", "schema/ann/", "line", "states/nobody/")]

    assert {it.headers["X-Content-Type-Options"] for it in answers} == {"nosniff"}


def test_a_choice_can_be_checked_before_it_is_sent_without_a_reservation(hub, ann):
    before = len(hub.log)
    for _ in range(2):
        fits = ask(ann, "decision/ann/", {"accelerator": "t4", "gpus": 2}).json()
        assert (fits["decision"], fits["message"]) == ("start", "There is room for this right now.")

    refused = ask(ann, "decision/ann/", {"accelerator": "t4", "gpus": 4}).json()
    assert (refused["decision"], refused["reason"]) == ("refuse", "impossible")
    assert refused["alternatives"][0]["options"] == {
        "accelerator": "t4",
        "gpus": 2,
        "image": None,
        "memory": "1Gi",
        "cpu": None,
    }
    assert "Not starting" not in hub.log[before:]
    assert not hub.pods.all()


def test_a_server_s_gpus_are_free_for_itself_but_not_for_a_new_server(hub, ann):
    both = {"accelerator": "t4", "gpus": 2}
    hub.start_until_ready("ann", both)

    assert ask(ann, "decision/ann/", both).json()["decision"] == "start"
    refused = ask(ann, "decision/ann/another", both).json()
    assert (refused["decision"], refused["reason"]) == ("refuse", "busy")


def test_invalid_choices_are_refused_with_errors(ann):
    bodies = [[], "x", {"gpus": "many"}, {"nodeName": "a"}]
    for body in bodies:
        answer = ask(ann, "decision/ann/", body).json()

        assert (answer["decision"], answer["reason"]) == ("refuse", "invalid-options"), body
        assert answer["errors"], body


def test_a_body_that_is_not_json_or_too_long_is_refused(hub, ann):
    hub.expect_errors("Couldn't parse JSON")
    url = f"{ann.hub.url}/hub/gpuspawner/decision/ann/"
    ann.open("/hub/home")
    headers = {"X-XSRFToken": ann.xsrf, "Content-Type": "application/json"}

    for body in (b"{", b"[" * 60_000, b"\xff"):
        assert ann.session.post(url, data=body, headers=headers).status_code == 400
    assert ann.session.post(url, data="1" * 70_000, headers=headers).status_code == 413


def status(person, method, path, token=None):
    """The status of an answer to a page's request; *token* instead of the page's own."""
    url = f"{person.hub.url}/hub/gpuspawner/{path}"
    sent = {
        "Sec-Fetch-Mode": "cors",
        "X-XSRFToken": person.xsrf if token is None else token,
        "Referer": f"{person.hub.url}/hub/home",
    }
    body = {} if method == "POST" else None
    with person.session.request(
        method, url, json=body, headers=sent, allow_redirects=False, stream=True
    ) as answer:
        return answer.status_code


@pytest.mark.each_hub
def test_an_endpoint_answers_only_those_who_have_its_scope(others, subtests):
    for method, path, whom in ENDPOINTS:
        with subtests.test(f"{method} {path}"):
            statuses = {person.name: status(person, method, path) for person in others}

            assert {name for name, it in statuses.items() if it in {200, 302}} == whom
            assert {it for name, it in statuses.items() if name not in whom} == {404}


def test_an_endpoint_answers_nobody_who_has_not_logged_in(hub, subtests):
    stranger = Person(hub, "")
    stranger.session.trust_env = False
    assert stranger.open("/hub/login").status == 200

    for method, path in [*WITH_A_TOKEN, ("GET", "line")]:
        with subtests.test(f"{method} {path}"):
            assert status(stranger, method, path) == 403


def test_an_endpoint_answers_no_page_of_another_site(ann, subtests):
    ann.open("/hub/home")

    for method, path in WITH_A_TOKEN:
        with subtests.test(f"{method} {path}"):
            assert status(ann, method, path, "forged") == 403


@pytest.mark.usefixtures("ann")
def test_an_endpoint_answers_administrators_but_finds_nobody_who_is_not_there(hub, subtests):
    admin = hub.person("admin")

    for method, path in [*WITH_A_TOKEN, PAGE]:
        with subtests.test(f"{method} {path}"):
            assert status(admin, method, path) in {200, 302}
            assert status(admin, method, path.replace("ann", "nobody")) == 404


def stop(person, form, **fields):
    """Press the form's button that stops the default server; return where it redirects."""
    person.open("/hub/home")
    answer = person.session.post(
        f"{person.hub.url}/hub/gpuspawner/stop/{person.name}/",
        params={"form": form, "_xsrf": person.xsrf},
        data=fields,
        allow_redirects=False,
    )
    assert answer.status_code == 302
    return answer.headers["Location"]


def test_a_button_of_the_form_stops_a_server_and_comes_back(hub, ann):
    hub.start_until_ready("ann", {"accelerator": "t4", "gpus": 2})

    kept = "opt-gpuspawner-chosen=accelerator%3Dt4%26gpus--t4%3D4"
    fields = {"accelerator": "t4", "gpus--t4": "4"}
    address = f"/hub/spawn/ann/train?{kept}#gpuspawner-usage"
    assert stop(ann, "train", _xsrf=ann.xsrf, **fields) == address
    wait_for(lambda: not hub.server("ann"))


def test_a_button_that_stops_a_server_comes_back_to_a_form_of_its_owner_whatever_is_asked(ann):
    asked = ("", "a b", "../../admin", "x?next=//example.org")
    paths = ("ann", "ann/a%20b", "ann/..%2F..%2Fadmin", "ann/x%3Fnext%3D%2F%2Fexample.org")

    assert [stop(ann, form) for form in asked] == [
        f"/hub/spawn/{path}#gpuspawner-usage" for path in paths
    ]


@pytest.mark.each_hub
def test_a_script_may_ask_with_a_token(hub):
    hub.api("POST", "/users/ann")
    url = "/../gpuspawner/states/ann/"

    assert hub.api("GET", url).status_code == 200


def test_browsers_keep_script_and_styles_by_version(ann):
    page = ann.open("/hub/spawn").html
    for name in ("form.js", "form.css"):
        path = next(part for part in page.split('"') if f"static/{name}?v=" in part)
        first = ann.session.get(f"{ann.hub.url}{path}")
        again = ann.session.get(
            f"{ann.hub.url}{path}", headers={"If-None-Match": first.headers["Etag"]}
        )
        assert (first.status_code, again.status_code) == (200, 304)
        assert "immutable" in first.headers["Cache-Control"]
        other = ann.session.get(f"{ann.hub.url}{path}".replace("?v=", "?v=0"))
        unnamed = ann.session.get(f"{ann.hub.url}{path}".partition("?")[0])
        twice = ann.session.get(f"{ann.hub.url}{path}&v=0")
        for answer in (other, unnamed, twice):
            assert (answer.status_code, answer.headers["Cache-Control"]) == (200, "no-cache")
    for odd in ("../build.py", "..%2fbuild.py", "form.js%00", "form.js/"):
        path = f"{ann.hub.url}/hub/gpuspawner/static/{odd}"
        assert ann.session.get(path).status_code == 404


@pytest.mark.each_hub
def test_the_hub_logs_no_warning(hub, ann):
    assert ann.open("/hub/spawn").status == 200
    assert ask(ann, "states/ann/").status_code == 200
    assert ask(ann, "decision/ann/", {}).status_code == 200

    assert "deprecated in JupyterHub 3.1" not in hub.log


@pytest.mark.each_hub
@pytest.mark.parametrize("server", ["", "work"])
def test_an_alternative_s_button_starts_that_alternative(hub, ann, server):
    refused = ann.submit({"accelerator": "t4", "gpus--t4": "4", "memory": "1Gi"}, server=server)

    assert refused.status == 409
    assert refused.chosen["accelerator"] == "t4"
    assert refused.chosen["gpus--t4"] == "4"
    [fewer, without] = refused.buttons("gpuspawner-instead")
    assert fewer == "accelerator=t4&gpus=2&memory=1Gi"
    assert without.startswith("accelerator=&gpus=0")

    ann.submit({**refused.chosen, "gpuspawner-instead": fewer}, server=server)

    servers = hub.api("GET", "/users/ann").json()["servers"]
    assert servers[server]["user_options"]["gpus"] == 2
    hub.api("DELETE", f"/users/ann/servers/{server}" if server else "/users/ann/server")


def test_an_alternative_s_button_passes_the_same_gates(ann):
    forged = ann.submit(
        {"accelerator": "t4", "gpuspawner-instead": "accelerator=t4&gpus=4&memory=1Gi"}
    )

    assert forged.status == 409
    assert forged.chosen["gpus--t4"] == "4"
    assert ann.submit({"gpuspawner-instead": "accelerator=h100"}).status == 400
