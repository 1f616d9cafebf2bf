"""Which code of the hub's own may change pods after a gate; the tests of hubs run some."""

from __future__ import annotations

import asyncio
from functools import cache, partial, wraps
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from jupyterhub.auth import Authenticator
from jupyterhub.utils import maybe_future
from kubernetes_asyncio.client import V1Toleration

from gpuspawner import GPUSpawner
from gpuspawner.compat.kubespawner import MAKING
from gpuspawner.start import hooks


def hook(*those: Any) -> None:
    maybe_future(those)


def of_the_environment(spawner: Any) -> None:
    spawner.environment["OWNER"] = short(spawner.user.name)


def short(name: str) -> str:
    return name[:8]


async def waiting(spawner: Any) -> None:
    # Administrators' hooks do ask the file system on the event loop.
    if Path("/nowhere", spawner.user.name).is_dir():  # noqa: ASYNC240
        await asyncio.sleep(1)


def setting_whatever(spawner: Any) -> None:
    setattr(spawner, *spawner.user.name.split("="))


class OwnStart(GPUSpawner):
    def start(self) -> Any:
        return super().start()


class OwnStartThatPrepares(GPUSpawner):
    def prepare(self) -> None:
        self.tolerations = [{"key": "a", "operator": "Exists"}]

    def start(self) -> Any:
        self.prepare()
        return super().start()


class OwnStartWithTolerations(GPUSpawner):
    def start(self) -> Any:
        self.tolerations = [{"key": "a", "operator": "Exists"}]
        return super().start()


class OwnGroups(GPUSpawner):
    async def apply_group_overrides(self) -> None:
        self.tolerations = [{"key": "a", "operator": "Exists"}]


class OwnPod(GPUSpawner):
    async def get_pod_manifest(self) -> Any:
        return await super().get_pod_manifest()


def overriding(_: Any) -> dict[str, Any]:
    return {"a": {"groups": ["x"], "spawner_override": {"node_selector": {"gpu": "a100"}}}}


A_FUNCTION = {"a": {"groups": ["x"], "spawner_override": {"mem_limit": hook}}}


class Preparing(Authenticator):
    def pre_spawn_start(self, user: Any, spawner: Any) -> None:
        spawner.tolerations = [{"key": user.name, "operator": "Exists"}]


def flags(spawner: Any, unused: tuple[str, ...] = ()) -> tuple[bool, bool]:
    after = hooks.later(spawner, spawner.hub.runtime(spawner), "", unused)
    return after.has_own_code, after.is_unknowable


def tolerate(spawner: Any, pod: Any) -> Any:
    spawner.log.info("Added a toleration")
    pod.spec.tolerations = [*(pod.spec.tolerations or ()), V1Toleration(key="a", operator="Exists")]
    return pod


def tolerate_as_configured(spawner: Any) -> None:
    from kubernetes_asyncio import client  # noqa: F401, as administrators write it

    spawner.tolerations = TOLERATIONS


TOLERATIONS = [{"key": "a", "operator": "Exists"}]


def of_a_user(spawner: Any) -> None:
    if spawner.user.name == "ann":
        spawner.tolerations = []


def calling_another(spawner: Any) -> None:
    of_a_user(spawner)


DIRECTORY = SimpleNamespace(values=len)


def asking_an_object(spawner: Any) -> None:
    spawner.tolerations = DIRECTORY.values(spawner)


def of_the_pod_s_name(_: Any, pod: Any) -> Any:
    pod.spec.tolerations = TOLERATIONS if pod.metadata.name == "jupyter-ann" else []
    return pod


@cache
def cached(spawner: Any) -> None:
    spawner.tolerations = TOLERATIONS


def importing(spawner: Any) -> None:
    from json import dumps

    spawner.tolerations = dumps(spawner)


def closing_over(users: list[str]) -> Any:
    def closed(spawner: Any) -> None:
        spawner.tolerations = users

    return closed


def of_options(spawner: Any) -> None:
    if spawner.user_options.get("size") == "big":
        spawner.tolerations = []


def of_a_variable(spawner: Any, pod: Any) -> Any:
    if spawner.environment.get("COURSE") == "ml":
        pod.spec.tolerations = TOLERATIONS
    return pod


def setting_a_variable(spawner: Any) -> None:
    spawner.environment["POOL"] = "gpu"
    spawner.tolerations = TOLERATIONS


environment = ModuleType("environment")


def of_a_module(spawner: Any, pod: Any) -> Any:
    environment.update(spawner, pod)
    return pod


@pytest.mark.each_hub
@pytest.mark.parametrize(
    ("traits", "found"),
    [
        ({}, (False, False)),
        ({"modify_pod_hook": hook}, (True, False)),
        ({"pre_spawn_hook": hook}, (True, False)),
        ({"pre_spawn_hook": of_the_environment}, (False, False)),
        ({"pre_spawn_hook": waiting}, (False, False)),
        ({"pre_spawn_hook": setting_whatever}, (True, False)),
        ({"of": OwnStart}, (False, False)),
        ({"of": OwnStartThatPrepares}, (True, False)),
        ({"of": OwnStartWithTolerations}, (True, False)),
        ({"of": OwnGroups}, (True, False)),
        ({"auth_state_hook": hook}, (True, False)),
        ({"apply_user_options": hook}, (False, True)),
        ({"apply_user_options": {"size": "mem_limit"}}, (False, True)),
        ({"apply_user_options": {}}, (False, False)),
        ({"group_overrides": hook}, (True, False)),
        ({"group_overrides": overriding}, (True, False)),
        ({"group_overrides": {}}, (False, False)),
        ({"group_overrides": A_FUNCTION}, (True, False)),
    ],
)
def test_code_that_may_place_a_server_elsewhere_is_found(hub_with, traits, found) -> None:
    assert flags(hub_with().spawner(**traits)) == found


@pytest.mark.each_python
@pytest.mark.parametrize(
    ("traits", "server", "is_unknowable"),
    [
        ({"modify_pod_hook": tolerate}, "", False),
        ({"pre_spawn_hook": tolerate_as_configured}, "", False),
        ({"of": OwnStartWithTolerations}, "", False),
        ({"pre_spawn_hook": of_a_user}, "alice/", False),
        ({"pre_spawn_hook": calling_another}, "alice/", False),
        ({"modify_pod_hook": of_the_pod_s_name}, "alice/", False),
        ({"pre_spawn_hook": importing}, "alice/", False),
        ({"pre_spawn_hook": closing_over(["ann"])}, "alice/", False),
        ({"pre_spawn_hook": cached}, "alice/", False),
        ({"pre_spawn_hook": partial(tolerate_as_configured)}, "alice/", False),
        ({"pre_spawn_hook": wraps(tolerate_as_configured)(lambda it: it)}, "alice/", False),
        ({"pre_spawn_hook": asking_an_object}, "alice/", False),
        ({"auth_state_hook": tolerate_as_configured}, "alice/", False),
        ({"modify_pod_hook": tolerate, "pre_spawn_hook": of_a_user}, "alice/", False),
        ({"pre_spawn_hook": of_options}, "alice/", True),
        ({"modify_pod_hook": of_a_variable}, "alice/", False),
        ({"pre_spawn_hook": setting_a_variable}, "alice/", False),
        ({"modify_pod_hook": of_a_module}, "alice/", False),
    ],
)
def test_only_code_that_can_ask_nothing_treats_all_users_and_options_alike(
    hub_with, traits, server, is_unknowable
) -> None:
    spawner = hub_with().spawner(**traits)

    after = hooks.later(spawner, spawner.hub.runtime(spawner), "")

    assert (after.server, after.is_unknowable) == (server, is_unknowable)


def test_a_class_that_makes_the_pod_counts_if_it_had_no_part_in_what_is_judged(hub_with) -> None:
    spawner = hub_with().spawner(OwnPod)

    assert flags(spawner) == (False, False)
    assert flags(spawner, MAKING) == (True, False)


def test_an_authenticator_that_prepares_a_start_counts_until_it_has_done_so(hub_with) -> None:
    spawner = hub_with().spawner()
    spawner.authenticator = Authenticator()
    assert flags(spawner) == (False, False)

    spawner.authenticator = Preparing()

    assert flags(spawner) == (True, False)
    spawner._spawn_pending = True
    assert flags(spawner) == (False, False)


@pytest.mark.parametrize(
    ("traits", "before", "at_the_start"),
    [
        ({}, False, False),
        ({"pre_spawn_hook": of_the_environment}, True, True),
        ({"modify_pod_hook": tolerate}, True, True),
        ({"of": OwnStart}, True, True),
        ({"auth_state_hook": of_the_environment}, True, False),
    ],
    ids=["none", "before the pod", "of the pod", "own start", "of the login"],
)
def test_any_code_that_has_not_run_yet_may_change_what_admission_looks_at(
    hub_with, traits, before, at_the_start
) -> None:
    spawner = hub_with().spawner(**traits)

    for is_starting, found in ((False, before), (True, at_the_start)):
        spawner._spawn_pending = is_starting
        assert hooks.later(spawner, spawner.hub.runtime(spawner), "").has_any_code == found


def in_the_pod(_: Any, pod: Any) -> Any:
    pod.spec = type(pod.spec)(containers=pod.spec.containers, priority_class_name="teachers")
    return pod


def in_further_fields(spawner: Any) -> None:
    spawner.extra_pod_config = {"priorityClassName": "teachers"}


def among_others(spawner: Any) -> None:
    spawner.apply_overrides({"priority_class_name": "teachers", "tolerations": []})


class Raising:
    def hook(self, spawner: Any) -> None:
        self.prefer(spawner)

    def prefer(self, spawner: Any) -> None:
        spawner.priority_class_name = "teachers"


class OwnStartThatPrefers(GPUSpawner):
    def prefer(self) -> None:
        self.priority_class_name = "teachers"

    def start(self) -> Any:
        self.prefer()
        return super().start()


@pytest.mark.parametrize(
    ("traits", "sets"),
    [
        ({"modify_pod_hook": in_the_pod}, True),
        ({"pre_spawn_hook": in_further_fields}, True),
        ({"pre_spawn_hook": among_others}, True),
        ({"pre_spawn_hook": Raising().hook}, True),
        ({"of": OwnStartThatPrefers}, True),
        ({"of": OwnStartWithTolerations}, False),
        ({"modify_pod_hook": tolerate}, False),
    ],
    ids=["pod", "further fields", "among others", "object", "class", "other class", "other hook"],
)
def test_a_priority_is_found_wherever_code_sets_it(hub_with, traits, sets) -> None:
    spawner = hub_with().spawner(**traits)

    assert hooks.later(spawner, spawner.hub.runtime(spawner), "").sets_priority is sets


def test_what_is_overridden_for_groups_changes_a_copy_alone(hub_with) -> None:
    overrides = {
        "b": {"groups": ["x"], "spawner_override": {"mem_limit": "2G", "environment": {"B": "1"}}},
        "a": {"groups": ["x", "y"], "spawner_override": {"mem_limit": "1G"}},
        "c": {"groups": ["z"], "spawner_override": {"mem_limit": "3G"}},
    }
    spawner: Any = hub_with().spawner(group_overrides=overrides, environment={"A": "1"})
    assert hooks.as_started(spawner) is spawner

    spawner.user.groups = [SimpleNamespace(name="x")]
    started: Any = hooks.as_started(spawner)

    assert (started.mem_limit, started.environment) == (2 * 2**30, {"A": "1", "B": "1"})
    assert (spawner.mem_limit, spawner.environment) == (None, {"A": "1"})


def test_a_function_of_a_group_runs_only_in_a_start(hub_with) -> None:
    spawner: Any = hub_with().spawner(group_overrides=A_FUNCTION)
    spawner.user.groups = [SimpleNamespace(name="x")]

    assert hooks.as_started(spawner) is spawner


def test_a_function_that_nobody_can_look_into_breaks_no_page(hub_with) -> None:
    def of_no_module(spawner: Any) -> None:
        return inner(spawner)

    inner = of_no_module
    of_no_module.__module__ = None
    of_no_module.__wrapped__ = of_no_module
    spawner: Any = hub_with().spawner(pre_spawn_hook=of_no_module)

    assert flags(spawner) == (True, False)
    assert hooks.reads_options(spawner) is False
