"""Which code of the hub's own may change pods after a gate; the tests of hubs run some."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from jupyterhub.auth import Authenticator
from kubernetes_asyncio.client import V1Toleration

from gpuspawner import GPUSpawner
from gpuspawner.compat.kubespawner import MAKING
from gpuspawner.spawn import own_code


def hook(*_: object) -> None:
    return None


class OwnStart(GPUSpawner):
    def start(self) -> Any:
        return super().start()


class OwnPod(GPUSpawner):
    async def get_pod_manifest(self) -> Any:
        return await super().get_pod_manifest()


class Preparing(Authenticator):
    def pre_spawn_start(self, user: Any, spawner: Any) -> None:
        spawner.tolerations = [{"key": user.name, "operator": "Exists"}]


def flags(spawner: Any, unused: tuple[str, ...] = ()) -> tuple[bool, bool]:
    after = own_code.later(spawner, spawner.hub.runtime(spawner), unused)
    return after.has_own_code, after.is_unknowable


def tolerate(spawner: Any, pod: Any) -> Any:
    pod.spec.tolerations = [V1Toleration(key="a", operator="Exists")]
    spawner.log.info("%s tolerates a", pod.metadata.name)
    return pod


def of_a_user(spawner: Any) -> None:
    if spawner.user.name == "ann":
        spawner.tolerations = []


def calling_another(spawner: Any) -> None:
    of_a_user(spawner)


def of_options(spawner: Any) -> None:
    if spawner.user_options.get("size") == "big":
        spawner.tolerations = []


@pytest.mark.each_hub
@pytest.mark.parametrize(
    ("kind", "traits", "found"),
    [
        (GPUSpawner, {}, (False, False)),
        (GPUSpawner, {"modify_pod_hook": hook}, (True, False)),
        (GPUSpawner, {"pre_spawn_hook": hook}, (True, False)),
        (OwnStart, {}, (True, False)),
        (GPUSpawner, {"auth_state_hook": hook}, (False, True)),
        (GPUSpawner, {"apply_user_options": hook}, (False, True)),
        (GPUSpawner, {"apply_user_options": {"size": "mem_limit"}}, (False, True)),
        (GPUSpawner, {"apply_user_options": {}}, (False, False)),
        (GPUSpawner, {"group_overrides": hook}, (False, True)),
        (GPUSpawner, {"group_overrides": {}}, (False, False)),
    ],
    ids=str,
)
def test_code_that_takes_part_in_a_start_is_found(hub_with, kind, traits, found) -> None:
    assert flags(hub_with().spawner(kind, **traits)) == found


@pytest.mark.parametrize(
    ("traits", "owner", "is_unknowable"),
    [
        ({"modify_pod_hook": tolerate}, "", False),
        ({"pre_spawn_hook": of_a_user}, "alice", False),
        ({"pre_spawn_hook": calling_another}, "alice", False),
        ({"pre_spawn_hook": print}, "alice", False),
        ({"modify_pod_hook": tolerate, "pre_spawn_hook": of_a_user}, "alice", False),
        ({"pre_spawn_hook": of_options}, "", True),
    ],
    ids=str,
)
def test_code_that_may_tell_users_or_options_apart_is_found(
    hub_with, traits, owner, is_unknowable
) -> None:
    spawner = hub_with().spawner(**traits)

    after = own_code.later(spawner, spawner.hub.runtime(spawner))

    assert (after.owner, after.is_unknowable) == (owner, is_unknowable)


def test_a_class_that_makes_the_pod_counts_if_it_had_no_part_in_what_is_judged(hub_with) -> None:
    spawner = hub_with().spawner(OwnPod)

    assert flags(spawner) == (False, False)
    assert flags(spawner, MAKING) == (True, False)


def test_an_authenticator_that_prepares_a_start_counts_until_it_has_done_so(hub_with) -> None:
    spawner = hub_with().spawner()
    spawner.authenticator = Authenticator()
    assert flags(spawner) == (False, False)

    spawner.authenticator = Preparing()

    assert flags(spawner) == (False, True)
    spawner._spawn_pending = True
    assert flags(spawner) == (False, False)


def test_what_is_overridden_for_groups_changes_a_copy_alone(hub_with) -> None:
    overrides = {
        "b": {"groups": ["x"], "spawner_override": {"mem_limit": "2G", "environment": {"B": "1"}}},
        "a": {"groups": ["x", "y"], "spawner_override": {"mem_limit": "1G"}},
        "c": {"groups": ["z"], "spawner_override": {"mem_limit": "3G"}},
    }
    spawner: Any = hub_with().spawner(group_overrides=overrides, environment={"A": "1"})
    assert own_code.as_started(spawner) is spawner

    spawner.user.groups = [SimpleNamespace(name="x")]
    started: Any = own_code.as_started(spawner)

    assert (started.mem_limit, started.environment) == (2 * 2**30, {"A": "1", "B": "1"})
    assert (spawner.mem_limit, spawner.environment) == (None, {"A": "1"})
