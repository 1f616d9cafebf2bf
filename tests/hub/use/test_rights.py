"""Who may read the use of GPUs, and who may keep a server, on a real hub."""

import pytest
import requests

from tests.hub.configurations import T4, t4_nodes
from tests.hub.policies.test_policy_attempts_by_rest import own_token

HUB = """
c.GPUSpawner.gpu_use = {"prometheus": "http://127.0.0.1:1"}
c.JupyterHub.services += [
    {"name": "culler", "api_token": "token-of-the-culler"},
    {"name": "other", "api_token": "token-of-another-service"},
]
c.JupyterHub.load_roles += [
    {"name": "culler", "services": ["culler"], "scopes": ["custom:gpuspawner:read:use"]},
    {"name": "other", "services": ["other"], "scopes": ["list:users", "read:servers"]},
]
"""


@pytest.fixture(scope="module")
def hub(start_gpu_hub, running_cluster):
    running_cluster.check()
    with start_gpu_hub(T4 + HUB) as running:
        yield running


def asked(hub, path, token="", **more):
    headers = {"Authorization": f"token {token}"} if token else {}
    return requests.get(f"{hub.url}/hub/gpuspawner/{path}", headers=headers, **more)


@pytest.mark.parametrize("path", ["use", "report"])
@pytest.mark.parametrize(
    ("token", "status"),
    [("", 403), ("no-token", 403), ("token-of-another-service", 403), ("token-of-the-culler", 200)],
)
def test_only_the_scope_reads_the_use_of_all_servers(hub, path, token, status):
    assert asked(hub, path, token).status_code == status


@pytest.mark.parametrize("path", ["use", "report"])
def test_neither_a_user_nor_an_administrator_reads_it_without_the_scope(hub, path):
    for user in ("ann", "admin"):
        token = own_token(hub, user)["headers"]["Authorization"].removeprefix("token ")
        assert asked(hub, path, token).status_code == 403


def test_what_is_read_names_no_user_but_by_the_urls_of_servers(hub, add_nodes):
    add_nodes(t4_nodes(1, 1))
    hub.start("bob", {"accelerator": "nothing"})

    report = asked(hub, "report", "token-of-the-culler")

    assert report.json()["refused"] == 1
    assert "bob" not in report.text
    assert report.headers["X-Content-Type-Options"] == "nosniff"
    assert asked(hub, "use", "token-of-the-culler").json() == {"servers": {}}


def test_only_an_owner_or_an_administrator_opens_the_page_that_keeps_a_server(hub):
    hub.api("POST", "/users/ann")
    owner, other = hub.person("ann"), hub.person("eve")

    assert owner.open("/hub/gpuspawner/keep/ann/").status == 404  # it has no GPU
    assert other.open("/hub/gpuspawner/keep/ann/").status == 404  # as the hub answers others
    posted = owner.session.post(f"{hub.url}/hub/gpuspawner/keep/ann/", data={})
    assert posted.status_code == 403  # without the token of the hub's forms
    stranger = requests.get(f"{hub.url}/hub/gpuspawner/keep/ann/")
    assert "/hub/login" in stranger.url
