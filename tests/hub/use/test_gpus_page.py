"""The page of GPUs: who sees what, who stops whose server, and what it never says."""

import re

import pytest
import requests

from localcluster import Fleet, NodeGroup
from tests.hub.running import API_TOKEN
from tests.waiting import wait_for

NODES = Fleet(
    (
        NodeGroup(
            "page-t4",
            1,
            {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "4"},
            labels={"gpu": "page-t4"},
        ),
    )
)
SCOPES = {
    "viewer": ["list:users", "read:servers"],
    "stopper": ["list:users", "read:servers", "delete:servers"],
    "lister": ["list:users"],
    "culler": ["delete:servers"],
    "teacher": ["admin:servers!user=ann"],
}
CONFIGURATION = f"""
c.JupyterHub.authenticate_prometheus = False
c.GPUSpawner.gpu_use = True
c.GPUSpawner.policies = {{"course": {{"groups": ["vision-course"], "gpus_per_group": 3}}}}
c.GPUSpawner.accelerators = {{"t4": {{
    "display_name": "Tesla T4", "counts": [1, 2, 8], "node_selector": {{"gpu": "page-t4"}}}}}}
c.JupyterHub.load_roles += [
    {{"name": f"the-{{name}}s", "users": [name], "scopes": scopes}}
    for name, scopes in {SCOPES}.items()
]
"""
SEES_NAMES = {"admin", "viewer", "stopper"}
SEES_BUTTONS = {"admin", "stopper"}
PEOPLE = (*SCOPES, "admin", "ann", "bob")
PAGES = ("gpus", "gpus/figures", "gpus?text=ann&order=node", "gpus/figures?page=1")


@pytest.fixture
def hub(kept_hub, add_nodes, cluster):  # noqa: ARG001
    """A hub in which ann has 2 of 4 GPUs, and eve was refused 8."""
    add_nodes(NODES)
    hub = kept_hub(CONFIGURATION)
    hub.api("POST", "/groups/vision-course", {"users": []})
    hub.start_until_ready("ann", {"accelerator": "t4", "gpus": 2})
    hub.start("eve", {"accelerator": "t4", "gpus": 8})
    return hub


def see(person, path="gpus"):
    answer = person.session.get(f"{person.hub.url}/hub/gpuspawner/{path}")
    assert answer.status_code == 200, answer.text
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cache-Control"] == "no-store"
    return answer.content.decode()


def cells(html, name):
    """Return the numbers of the row of this name."""
    row = re.search(rf'<th scope="row">{re.escape(name)}.*?</th>(.*?)(?:</tr>|\n)', html, re.DOTALL)
    assert row, html
    return [int(it) for it in re.findall(r"<td>(\d+)(?=<|$)", row[1])]


def stop(person, owner="ann", **fields):
    """Press a button of the page, as a browser does."""
    person.open("/hub/home")
    page = f"{person.hub.url}/hub/gpuspawner/gpus"
    sent = {"_xsrf": person.xsrf, **fields}
    headers = {"Referer": page}
    return person.session.post(
        f"{page}/stop/{owner}/", data=sent, headers=headers, allow_redirects=False
    )


@pytest.mark.each_hub
def test_everybody_sees_the_numbers_and_only_administrators_see_names(hub):
    node = hub.pods.of("ann")["spec"]["nodeName"]
    for name in PEOPLE:
        person = hub.person(name)
        for path in PAGES:
            html = see(person, path).replace(f'"me-1">{name}<', "")
            figures = html[html.index('<div class="gpuspawner-gpus"') :]
            figures = figures.replace(f"/stream/{name}/", "")
            assert cells(figures, "Tesla T4") == [1, 2, 2, 0, 0, 0, 0, 4, 0], (name, path)
            refusals = re.search(r"<code>impossible</code></a> [1-9]", figures)
            assert bool(refusals) == (name in SEES_NAMES), (name, path, figures)
            told = {it for it in ("ann", "vision-course", node) if it in figures}
            assert bool(told) == (name in SEES_NAMES), (name, path, told)
            assert ("gpus/stop/ann/" in figures) == (name in SEES_BUTTONS), (name, path)


def test_an_administrator_sees_each_node_server_and_share(hub):
    html = see(hub.person("admin"))

    row = html[html.index("page-t4") :]
    assert "Tesla T4" in row
    assert re.search(r'<th scope="row">ann</th><td>2 × Tesla T4</td><td>page-t4', html)
    assert re.search(r"vision-course</th><td>course</td><td>0</td><td>3 GPUs</td>", html)
    assert "1 to 1 of 1" in html


def test_a_stranger_is_led_to_the_login_and_a_token_is_not_taken(hub):
    (server,) = hub.pods.of("ann")["spec"]["containers"]
    own = {it["name"]: it.get("value", "") for it in server["env"]}["JUPYTERHUB_API_TOKEN"]
    for token in (None, API_TOKEN, own):
        headers = {"Authorization": f"token {token}"} if token else {}
        for path in PAGES:
            url = f"{hub.url}/hub/gpuspawner/{path}"
            answer = requests.get(url, headers=headers, allow_redirects=False, timeout=10)
            assert answer.status_code == 302
            assert answer.headers["Location"].startswith("/hub/login?next=")
            assert "T4" not in answer.text


def test_the_stream_says_that_something_has_changed_and_nothing_else(hub):
    bob = hub.person("bob")
    bob.open("/hub/home")
    url = f"{hub.url}/hub/gpuspawner/gpus/stream/bob/"
    headers = {"X-XSRFToken": bob.xsrf, "Sec-Fetch-Mode": "cors"}

    with bob.session.get(url, headers=headers, stream=True, timeout=30) as answer:
        assert answer.status_code == 200, answer.text
        events = (it for it in answer.iter_lines(chunk_size=1) if it.startswith(b"data:"))
        first = next(events)
        hub.stop("ann")
        assert re.fullmatch(rb'data: {"is": "-?\d+"}', first)
        assert next(events) != first

    eve = hub.person("eve")
    eve.open("/hub/home")
    headers["X-XSRFToken"] = eve.xsrf
    assert eve.session.get(url, headers=headers, timeout=30).status_code in {403, 404}
    assert requests.get(url, timeout=30).status_code == 403


@pytest.mark.each_hub
def test_who_may_stop_a_server_comes_back_to_what_was_shown(hub):
    answer = stop(hub.person("stopper"), text="t4", order="since", page="1")

    assert answer.status_code == 302, answer.text
    assert answer.headers["Location"] == "/hub/gpuspawner/gpus?text=t4&order=since#servers"
    wait_for(lambda: not hub.server("ann"))


def test_whose_server_an_administrator_has_stopped_reads_it_and_nobody_is_told_of_their_own_stop(
    hub,
):
    ann, said = hub.person("ann"), "ended because an administrator stopped it."
    stop(hub.person("admin"))
    wait_for(lambda: not hub.server("ann"))
    assert said in ann.open("/hub/home").html
    assert f"Your last server {said}" in ann.open("/hub/spawn").html

    hub.start_until_ready("ann", {"accelerator": "t4", "gpus": 1})
    assert said not in ann.open("/hub/home").html
    sent = {"_xsrf": ann.xsrf}
    address = f"{hub.url}/hub/gpuspawner/stop/ann/"
    assert ann.session.post(address, data=sent, headers={"Referer": hub.url}).ok
    wait_for(lambda: not hub.server("ann"))
    assert said not in ann.open("/hub/home").html


def test_a_button_leads_nowhere_else(hub):
    answer = stop(hub.person("admin"), order="//evil.example", page="x", next="//evil.example")

    assert answer.headers["Location"] == "/hub/gpuspawner/gpus#servers"


def test_nobody_else_stops_it_nor_anybody_without_the_token_of_the_page(hub):
    for name in ("viewer", "lister", "bob"):
        assert stop(hub.person(name)).status_code in {403, 404}
    assert stop(hub.person("admin"), _xsrf="guessed").status_code == 403
    assert hub.server("ann")["ready"]


def test_names_are_escaped(hub):
    html = see(hub.person("admin"), "gpus?text=%22%3E%3Cscript%3Ealert(1)%3C/script%3E")

    assert "<script>alert" not in html
    assert "&lt;script&gt;alert" in html
    assert "No servers found." in html


@pytest.mark.each_hub
def test_each_page_has_a_link_to_it_unless_the_hub_has_a_navigation_of_its_own(hub):
    link = 'href="/hub/gpuspawner/gpus"'

    assert link in hub.person("bob").open("/hub/home").html
    assert link in see(hub.person("bob"))


def test_the_figures_for_prometheus_say_the_same_and_name_nobody(hub):
    def metrics():
        return requests.get(f"{hub.url}/hub/metrics", timeout=10).text

    line = 'jupyterhub_gpuspawner_gpus{accelerator="t4",state="ours"} 2.0'
    wait_for(lambda: line in metrics())
    ours = [it for it in metrics().splitlines() if it.startswith("jupyterhub_gpuspawner_")]
    assert not [it for it in ours if "ann" in it or "page-t4" in it or "vision" in it]
