"""Streams that keep open forms current, through the real proxy."""

import time
from contextlib import ExitStack

import pytest
import requests

from gpuspawner.web.open_streams import MOST_OF_ONE
from localcluster import Fleet, NodeGroup
from tests.hub.streams import following, following_at, state_of
from tests.waiting import wait_for

OFFERED = """
c.JupyterHub.allow_named_servers = True
c.GPUSpawner.accelerators = {"t4": {
    "display_name": "Tesla T4", "counts": [1, 2], "node_selector": {"gpu": "stream-t4"}}}
"""
T4 = NodeGroup(
    "stream-t4",
    1,
    {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "2"},
    labels={"gpu": "stream-t4"},
)


@pytest.fixture
def hub(kept_hub, add_nodes):
    add_nodes(Fleet((T4,)))
    return kept_hub(OFFERED)


@pytest.fixture
def ann(hub):
    return hub.person("ann")


class Holder:
    """A pod of somebody else that holds both GPUs.

    Attributes:
        changed_at: When the API server had changed it last, by the monotonic clock.
    """

    def __init__(self, hub, cluster):
        self._api = cluster.api
        self._path = hub.pods.path
        self.changed_at = 0.0

    def hold(self):
        limits = {"nvidia.com/gpu": "2"}
        container = {"name": "c", "image": "x", "resources": {"limits": limits}}
        spec = {
            "nodeName": "stream-t4-0",
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
        }
        self.changed_at = time.monotonic()
        self._api.create(self._path, {"metadata": {"name": "holds-both"}, "spec": spec})

    def let_go(self):
        self.changed_at = time.monotonic()
        self._api.delete(f"{self._path}/holds-both", grace=0)


@pytest.fixture
def holder(hub, running_cluster):
    return Holder(hub, running_cluster)


def seconds_until_the_form_shows_each_change(ann, holder):
    late = []
    with following(ann) as form:
        form.until(lambda states: state_of(states, "t4") == "free")
        for _ in range(5):
            holder.hold()
            late.append(form.until(lambda it: state_of(it, "t4") == "busy") - holder.changed_at)
            holder.let_go()
            late.append(form.until(lambda it: state_of(it, "t4") == "free") - holder.changed_at)
    return late


def test_a_gpu_that_is_taken_or_freed_reaches_an_open_form(ann, holder):
    assert len(seconds_until_the_form_shows_each_change(ann, holder)) == 10


@pytest.mark.nightly(why="it watches the clock")
def test_a_change_reaches_an_open_form_within_a_second(ann, holder):
    late = sorted(seconds_until_the_form_shows_each_change(ann, holder))

    # A busy machine may stand still for a moment, but not half of the time.
    assert late[len(late) // 2] < 1, late


def test_a_form_gets_no_event_for_what_it_does_not_show(ann, hub, running_cluster, holder):
    with following(ann) as form:
        form.until(lambda states: state_of(states, "t4") == "free")
        metadata, spec = {"name": "pending"}, {"containers": [{"name": "c", "image": "x"}]}
        running_cluster.api.create(hub.pods.path, {"metadata": metadata, "spec": spec})
        running_cluster.api.delete(f"{hub.pods.path}/pending", grace=0)
        holder.hold()
        form.until(lambda states: state_of(states, "t4") == "busy")
        shown = [state_of(states, "t4") for _, states in form.events]
        holder.let_go()
    assert shown == ["free", "busy"]


def test_it_says_the_same_as_the_states_and_is_not_kept_or_buffered(ann):
    with following(ann) as form:
        form.until(lambda states: bool(states["accelerators"]))
        headers = {"Sec-Fetch-Mode": "cors", "X-XSRFToken": ann.xsrf}
        asked = ann.session.get(f"{ann.hub.url}/hub/gpuspawner/states/ann/", headers=headers)
        assert form.events[0][1] == asked.json()
        told = form.answer.headers
        assert told["Content-Type"] == "text/event-stream"
        assert told["Cache-Control"] == "no-store"
        assert told["X-Accel-Buffering"] == "no"
        assert told["X-Content-Type-Options"] == "nosniff"


def test_a_script_may_follow_until_its_token_expires(hub, ann):
    ann.open("/hub/home")
    asking = {"X-XSRFToken": ann.xsrf, "Sec-Fetch-Mode": "cors"}
    tokens, session = f"{hub.url}/hub/api/users/ann/tokens", requests.Session()
    session.trust_env = False
    url = f"{hub.url}/hub/gpuspawner/stream/ann/"

    def followed_until_its_end():
        """Return the last event; "" if the machine has stood still until the token expired."""
        made = ann.session.post(tokens, json={"expires_in": 4}, headers=asking)
        session.headers["Authorization"] = f"token {made.json()['token']}"
        with following_at(url, session, {}) as form:
            wait_for(lambda: form.is_over)
            return form.last if form.events else ""

    assert wait_for(followed_until_its_end) == "again"
    assert session.get(url).status_code == 403


def test_another_stream_of_the_same_client_ends_the_oldest(ann):
    with ExitStack() as stack:
        forms = [stack.enter_context(following(ann)) for _ in range(MOST_OF_ONE + 1)]
        wait_for(lambda: forms[0].is_over)
        assert forms[0].last == "full"
        assert not any(form.is_over for form in forms[1:])


def test_the_hub_ends_although_forms_are_open(start_gpu_hub):
    """A stream may last ten minutes."""
    with start_gpu_hub(OFFERED) as hub:
        cat = hub.person("cat")
        with following(cat) as one, following(cat) as other:
            for form in (one, other):
                form.until(lambda states: bool(states["accelerators"]))
            hub.process.terminate()
            wait_for(lambda: not hub.lives and one.is_over and other.is_over)
        assert "Traceback" not in hub.log
        assert "was destroyed but it is pending" not in hub.log
