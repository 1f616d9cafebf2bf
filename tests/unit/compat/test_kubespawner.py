"""What KubeSpawner does with the pod of a start that has failed, and whose code has failed."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from jupyterhub.utils import exponential_backoff

from gpuspawner.compat.kubespawner import Stock, is_of_others

pytestmark = pytest.mark.each_python

RUNS = {"name": "notebook", "state": {"running": {"startedAt": "2026-11-21T20:30:00Z"}}}
CRASHED = {"name": "notebook", "state": {"terminated": {"exitCode": 1}}}
AGAIN = {"name": "notebook", "state": {"waiting": {}}, "lastState": {"terminated": {"exitCode": 1}}}
WAITS = {"name": "notebook", "state": {"waiting": {"reason": "ContainerCreating"}}, "lastState": {}}


def stock(status: dict[str, Any] | None, *, deletes: bool = True) -> Stock:
    spawner: Any = SimpleNamespace(
        namespace="hub",
        pod_name="jupyter-ann",
        delete_stopped_pods=deletes,
        reflectors={},
        _get_reflector_key=lambda kind: kind,
    )
    if status is not None:
        spawner.reflectors["pods"] = SimpleNamespace(pods={"hub/jupyter-ann": {"status": status}})
    return Stock(None, spawner)


@pytest.mark.parametrize("kind", ["containerStatuses", "initContainerStatuses"])
@pytest.mark.parametrize("container", [RUNS, CRASHED, AGAIN], ids=["runs", "crashed", "will again"])
def test_a_pod_whose_containers_have_run_is_stopped_by_kubespawner(kind, container) -> None:
    assert stock({"phase": "Running", kind: [WAITS, container]}).stops_pod()


@pytest.mark.parametrize(
    "status",
    [
        None,
        {},
        {"phase": "Pending"},
        {"phase": "Failed"},
        {"containerStatuses": None},
        {"phase": "Pending", "containerStatuses": [WAITS]},
    ],
    ids=["unseen", "new", "may be refused by its node", "was refused", "empty", "pulls its image"],
)
def test_a_pod_whose_containers_have_not_run_is_not(status) -> None:
    assert not stock(status).stops_pod()


def test_a_failed_pod_is_kept_if_the_administrator_keeps_stopped_pods() -> None:
    assert stock({"phase": "Failed"}, deletes=False).stops_pod()


async def test_a_reflector_that_should_be_replaced_stays_if_the_new_one_fails() -> None:
    found = stock(None)
    before, failed = (SimpleNamespace(first_load_future=asyncio.Future()) for _ in "12")
    before.first_load_future.set_result(None)
    failed.first_load_future.set_exception(ConnectionError())
    failed.first_load_future.exception()
    found._spawner.reflectors["pods"] = failed

    found.drop_reflector("pods", before)
    assert found.reflector("pods") is before

    found._spawner.reflectors["pods"] = failed
    for worked in (None, failed):
        found.drop_reflector("pods", worked)
        assert found.reflector("pods") is None


async def test_the_pods_are_known_once_they_have_been_read() -> None:
    found = stock({"phase": "Pending"})
    first: asyncio.Future[None] = asyncio.Future()
    found.reflector("pods").first_load_future = first

    assert not found.knows_pods()
    assert not found.knows_no_pod()
    first.set_result(None)
    assert found.knows_pods()
    assert not found.knows_no_pod()
    found.reflector("pods").pods.clear()
    assert found.knows_no_pod()
    assert not stock(None).knows_pods()


def _step(calls: Callable[[], Awaitable[Any]]) -> Callable[[], Awaitable[Any]]:
    """Return a function whose frame looks as KubeSpawner's own do."""
    names: dict[str, Any] = {"__name__": "kubespawner.spawner", "calls": calls}
    exec("async def step():\n    return await calls()", names)
    step: Callable[[], Awaitable[Any]] = names["step"]
    return step


never = partial(exponential_backoff, lambda: False, "the pod didn't start", timeout=0.01)


async def _hook() -> None:
    raise ValueError("no course")


async def _hook_that_waits() -> None:
    await asyncio.wait_for(asyncio.sleep(60), 0.01)


async def _hook_that_waits_as_the_hub_does() -> None:
    await never()


async def _hook_that_calls_kubespawner() -> None:
    await _step(never)()


@pytest.mark.parametrize("hook", [_hook, _hook_that_waits, _hook_that_waits_as_the_hub_does])
async def test_what_a_hook_raises_is_of_others(hook) -> None:
    for method in (_step(hook), hook):  # it may be a method of a class, before KubeSpawner's
        with pytest.raises((ValueError, TimeoutError)) as raised:
            await Stock(SimpleNamespace(_start=method), None).run_start()
        assert is_of_others(raised.value)


@pytest.mark.parametrize("step", [never, _hook_that_calls_kubespawner])
async def test_what_kubespawner_itself_raises_is_not(step) -> None:
    with pytest.raises(TimeoutError) as raised:
        await Stock(SimpleNamespace(_start=_step(step)), None).run_start()
    assert not is_of_others(raised.value)


async def test_who_has_called_kubespawner_has_not_raised_its_error() -> None:
    with pytest.raises(ValueError, match="no course") as raised:
        await _hook()
    assert not is_of_others(raised.value)


async def test_what_a_hook_has_returned_is_of_others_too() -> None:
    """KubeSpawner awaits it itself, so that the hook isn't among the callers."""
    names: dict[str, Any] = {"__name__": "kubespawner.spawner"}
    exec("async def _start():\n    return await hook()", names)
    names["hook"] = lambda: asyncio.wait_for(asyncio.sleep(60), 0.01)
    with pytest.raises(TimeoutError) as raised:
        await Stock(SimpleNamespace(_start=names["_start"]), None).run_start()
    assert is_of_others(raised.value)

    names["hook"] = never
    with pytest.raises(TimeoutError) as raised:
        await Stock(SimpleNamespace(_start=names["_start"]), None).run_start()
    assert not is_of_others(raised.value)
