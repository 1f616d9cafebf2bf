"""A stream ends soon after its caller has lost the right to it, and not before."""

import pytest
import requests

from tests.hub.streams import following, following_at
from tests.waiting import wait_for

pytestmark = pytest.mark.each_hub

# Often, so that the tests needn't take minutes; a stream's time isn't over before.
CONFIGURATION = """
from gpuspawner.web import broadcast, open_streams
broadcast._TEND_SECONDS, open_streams.CHECK_SECONDS = 0.2, 0.2
c.GPUSpawner.accelerators = {"t4": {"display_name": "Tesla T4", "node_selector": {"gpu": "t4"}}}
c.JupyterHub.load_groups = {"teachers": ["teacher"]}
c.JupyterHub.load_roles = [
    *c.JupyterHub.load_roles,
    {"name": "teaching", "groups": ["teachers"], "scopes": ["servers"]},
]
"""


@pytest.fixture
def hub(kept_hub):
    return kept_hub(CONFIGURATION)


@pytest.fixture
def bystander(hub):
    """A form of somebody who keeps her rights; it is still open in the end."""
    with following(hub.person("ann")) as form:
        until_it_shows(form)
        yield form
        assert not form.is_over


def until_it_shows(form):
    form.until(lambda states: bool(states["accelerators"]))


def status(person, of):
    """The status of the next request of the person's page."""
    sent = {"Sec-Fetch-Mode": "cors", "X-XSRFToken": person.xsrf}
    url = f"{person.hub.url}/hub/gpuspawner/stream/{of}/"
    with person.session.get(url, headers=sent, stream=True) as answer:
        return answer.status_code


@pytest.mark.usefixtures("bystander")
def test_the_stream_of_a_revoked_token_ends(hub):
    bob = hub.person("bob")
    bob.open("/hub/home")
    asking = {"X-XSRFToken": bob.xsrf, "Sec-Fetch-Mode": "cors"}
    tokens = f"{hub.url}/hub/api/users/bob/tokens"
    made = bob.session.post(tokens, json={}, headers=asking).json()
    session = requests.Session()
    session.trust_env = False
    headers = {"Authorization": f"token {made['token']}"}
    url = f"{hub.url}/hub/gpuspawner/stream/bob/"
    with following_at(url, session, headers) as form:
        until_it_shows(form)
        assert bob.session.delete(f"{tokens}/{made['id']}", headers=asking).ok
        wait_for(lambda: form.is_over)
    assert form.last == "again"
    assert session.get(url, headers=headers).status_code == 403


@pytest.mark.usefixtures("bystander")
def test_the_streams_of_a_deleted_user_end_also_the_administrators(hub):
    cat, admin = hub.person("cat"), hub.person("admin")
    url = f"{hub.url}/hub/gpuspawner/stream/cat/"
    admin.open("/hub/home")
    headers = {"Sec-Fetch-Mode": "cors", "X-XSRFToken": admin.xsrf}
    with following(cat) as own, following_at(url, admin.session, headers) as others:
        until_it_shows(own)
        until_it_shows(others)
        hub.api("DELETE", "/users/cat")
        wait_for(lambda: own.is_over and others.is_over)
    assert (own.last, others.last) == ("again", "again")
    assert status(cat, "cat") == 403
    assert status(admin, "cat") == 404


@pytest.mark.usefixtures("bystander")
def test_the_stream_of_somebody_who_has_lost_a_role_ends(hub):
    teacher = hub.person("teacher")
    teacher.open("/hub/home")
    headers = {"Sec-Fetch-Mode": "cors", "X-XSRFToken": teacher.xsrf}
    url = f"{hub.url}/hub/gpuspawner/stream/ann/"
    with following_at(url, teacher.session, headers) as anns, following(teacher) as own:
        until_it_shows(anns)
        until_it_shows(own)
        hub.api("DELETE", "/groups/teachers/users", {"users": ["teacher"]})
        wait_for(lambda: anns.is_over)
        assert anns.last == "again"
        assert status(teacher, "ann") == 404
        assert not own.is_over
