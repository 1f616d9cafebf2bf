"""Any body is refused or starts what it asks for; the hub never counts it as a failure."""

from __future__ import annotations

from collections.abc import Callable

import jupyterhub
import pytest
import requests

from tests.fixtures.cluster import AddNodes
from tests.hub.kept import LendHub
from tests.hub.running import RunningHub

pytestmark = pytest.mark.each_hub

# This hub ends if it counts a single failure.
CONFIGURATION = """
c.Spawner.consecutive_failure_limit = 1
c.GPUSpawner.images = {"small": {"image": "small:1"}, "large": {"image": "large:1"}}
"""
BEYOND_EVERY_PYTHON = 20_000


@pytest.fixture
def hub(kept_hub: LendHub, add_nodes: AddNodes) -> RunningHub:
    """A hub with one node."""
    add_nodes("single")
    hub = kept_hub(CONFIGURATION)
    hub.expect_errors("Couldn't parse JSON")
    return hub


def _start(hub: RunningHub, user: str, body: bytes) -> requests.Response:
    hub.api("POST", f"/users/{user}")
    return hub.raw("POST", f"/users/{user}/server", body)


def _deepest_that_the_hub_reads(hub: RunningHub, user: str, body_of: Callable[[int], bytes]) -> int:
    """Find the depth by trial: it depends on Python's version and the hub's own stack."""
    hub.api("POST", f"/users/{user}")
    read, unread = 1, BEYOND_EVERY_PYTHON
    while unread - read > 1:
        depth = (read + unread) // 2
        answer = _start(hub, user, body_of(depth))
        if "Invalid JSON" in answer.text:
            unread = depth
        else:
            read = depth
    return read


def _lists(depth: int) -> bytes:
    return b'{"image":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"


def _objects(depth: int) -> bytes:
    return b'{"image":' * depth + b"0" + b"}" * depth


def _beside_options(depth: int) -> bytes:
    """JupyterHub 6 reads only `user_options`, and JupyterHub 5 refuses that name."""
    return b'{"user_options":null,"display_name":"",' + _lists(depth)[1:]


@pytest.mark.parametrize(
    "body_of",
    [
        _lists,
        pytest.param(_objects, marks=pytest.mark.nightly("the same readers meet lists")),
        _beside_options,
    ],
)
def test_a_body_of_any_depth_is_a_400_and_stores_nothing(
    hub: RunningHub, body_of: Callable[[int], bytes]
) -> None:
    user = f"deep{body_of.__name__.replace('_', '-')}"
    deepest = _deepest_that_the_hub_reads(hub, user, body_of)

    # Later readers and writers of the options have less stack left than the hub's first reader.
    for depth in (300, *range(deepest - 24, deepest + 2)):
        answer = _start(hub, user, body_of(depth))

        assert answer.status_code == 400, f"depth {depth}: {answer.status_code} {answer.text}"
        assert hub.api("GET", "/users").status_code == 200, f"depth {depth}"
    assert hub.person(user).open("/hub/spawn").status == 200
    assert hub.lives
    assert "consecutive spawn" not in hub.log
    hub.start_until_ready("somebody-else")
    assert hub.start(user).status_code in {201, 202}


NOT_JSON_IN_UTF_8 = {
    "blank": b" ",
    "invalid": b'{"image":"large\xff"}',
    "mark": '\ufeff{"image":"large"}'.encode(),
    "utf-16": '{"image":"large"}'.encode("utf-16"),
}


def test_a_body_that_is_not_json_in_utf_8_starts_nothing(
    hub: RunningHub, subtests: pytest.Subtests
) -> None:
    hub.expect_errors("POST /hub/api/users/mallory/server", "] {")
    for name, body in NOT_JSON_IN_UTF_8.items():
        with subtests.test(name):
            answer = _start(hub, "mallory", body)

            status = 500 if _jupyterhub_itself_fails_at(body) else 400
            assert answer.status_code == status, answer.text
            assert not hub.server("mallory")
    assert hub.lives


def _jupyterhub_itself_fails_at(body: bytes) -> bool:
    """JupyterHub 5 fails to decode this body before it checks it, and starts nothing."""
    return jupyterhub.version_info[0] < 6 and body.decode(errors="ignore").encode() != body


def test_an_empty_body_sends_no_options(hub: RunningHub) -> None:
    assert _start(hub, "alice", b"").status_code in {201, 202}

    assert hub.until_ready("alice")["user_options"]["image"] == "small"
