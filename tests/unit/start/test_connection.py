"""A spawner works without a usable kubeconfig, and connects as soon as there is one."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import ServerDisconnectedError
from kubernetes_asyncio.client import ApiException, V1ObjectMeta, V1Pod
from kubespawner import KubeSpawner
from kubespawner.clients import load_config
from kubespawner.spawner import PodReflector
from traitlets import TraitError

from gpuspawner import GPUSpawner
from gpuspawner.compat import kubespawner
from gpuspawner.compat.reflecting import telling
from gpuspawner.start import connection
from gpuspawner.start.connection import IfConnected
from tests.unit.makers.hubs import Script

EXEC_PLUGIN = """
current-context: here
contexts: [{name: here, context: {cluster: it, user: me}}]
clusters: [{name: it, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: me, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: no-such}}}]
"""
TOKEN = """
current-context: here
contexts: [{name: here, context: {cluster: it, user: me}}]
clusters: [{name: it, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: me, user: {token: abc}}]
"""


@pytest.fixture
def make(hub_with) -> Callable[..., GPUSpawner]:
    """Make a spawner as a hub does, without a client."""
    return partial(GPUSpawner, _mock=True, hub=hub_with())


@pytest.fixture
def write(tmp_path, monkeypatch) -> Callable[[str], object]:
    """Return a function that writes the kubeconfig; until then there is none."""
    load_config.cache_clear()  # it caches its first result for good
    monkeypatch.setattr(
        "kubernetes_asyncio.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION",
        str(tmp_path / "config"),
    )
    return (tmp_path / "config").write_text


@pytest.mark.parametrize("text", [None, "", "just text", "{broken: [", EXEC_PLUGIN])
async def test_a_kubeconfig_that_cannot_be_read_is_an_outage(write, make, text) -> None:
    if text is not None:
        write(text)

    spawner = make()

    assert not kubespawner.connect(spawner)
    assert await spawner.poll() == 1
    write(TOKEN)
    assert kubespawner.connect(spawner)


async def test_without_a_kubeconfig_admission_is_not_asked(write, make) -> None:
    asked = Script()
    asked.answer = lambda pod: pod
    admission = IfConnected(make(), asked)

    assert await admission.admit("jhub", {"spec": {}}) is None
    assert asked.asked == []
    write(TOKEN)
    assert await admission.admit("jhub", {"spec": {}}) == {"spec": {}}


@pytest.mark.parametrize("text", [None, TOKEN], ids=["no kubeconfig", "a kubeconfig"])
async def test_a_wrong_trait_is_not_an_outage(write, make, text) -> None:
    if text:
        write(text)

    with pytest.raises(TraitError):
        make(start_timeout="soon")


async def test_a_trait_that_kubespawner_has_renamed_is_not_an_outage(
    write, make, monkeypatch
) -> None:
    spawner = make()
    write(TOKEN)
    monkeypatch.delattr(KubeSpawner, "k8s_api_host")

    with pytest.raises(AttributeError):
        kubespawner.connect(spawner)


@pytest.fixture
def reflectors(write, monkeypatch) -> dict[object, Any]:
    """The reflectors that all spawners share, while there is a kubeconfig."""
    write(TOKEN)
    monkeypatch.setattr(KubeSpawner, "reflectors", {})
    return KubeSpawner.reflectors


class Listing(PodReflector):
    """A reflector whose first list lasts until the test ends it."""

    def __init__(self, **_: object) -> None:
        self.first_load_future: asyncio.Future[None] = asyncio.Future()

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


class Failing(Listing):
    """A reflector whose first list fails."""

    async def start(self) -> None:
        self.first_load_future.set_exception(ConnectionError())


class Quick(Listing):
    """A reflector whose first list is read at once."""

    def __init__(self, **_: object) -> None:
        super().__init__()
        self.first_load_future.set_result(None)


async def test_the_next_start_restarts_a_reflector_whose_first_list_failed(
    make, reflectors
) -> None:
    with pytest.raises(ConnectionError):
        await make()._start_reflector("pods", Failing)

    assert reflectors == {}


@pytest.mark.each_python
async def test_cancelling_a_start_during_the_first_list_cancels_no_other(make, reflectors) -> None:
    first, second = make(), make()
    starts = [asyncio.ensure_future(it._start_reflector("pods", Listing)) for it in (first, second)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    starts[1].cancel()
    with pytest.raises(asyncio.CancelledError):
        await starts[1]
    [reflector] = reflectors.values()
    reflector.first_load_future.set_result(None)

    assert await starts[0] is reflector


async def test_only_a_new_reflector_gets_a_class_that_tells_what_is_gone(
    make, reflectors, monkeypatch
) -> None:
    told: list[object] = []

    def counted(reflector: object, gone: object) -> object:
        told.append(gone)
        return telling(reflector, gone)

    monkeypatch.setattr(connection, "telling", counted)
    spawner = make()

    first = await spawner._start_reflector("pods", Quick)
    assert await spawner._start_reflector("pods", Quick) is first
    assert len(told) == 1
    assert await spawner._start_reflector("pods", Quick, replace=True) is not first
    assert len(told) == 2
    assert all(type(it) is not Quick for it in reflectors.values())


POD = V1Pod(metadata=V1ObjectMeta(name="x"))
LOST = [
    ServerDisconnectedError(),
    ConnectionResetError(),
    ApiException(status=503, reason="the API server ends"),
]


@pytest.mark.parametrize("error", LOST, ids=repr)
async def test_requests_whose_connection_is_lost_are_sent_again(make, error) -> None:
    """KubeSpawner itself sends again what isn't answered in time, and calls the rest an error."""
    spawner = make()
    spawner.api = SimpleNamespace(
        create_namespaced_pod=_failing(error),
        create_namespaced_persistent_volume_claim=_failing(error),
        delete_namespaced_pod=_failing(error),
    )
    assert not await spawner.gpuspawner_stock.create_pod(POD, 3)
    assert not await spawner.gpuspawner_stock.create_pvc(POD, 3)
    assert not await spawner._make_delete_pod_request(spawner.pod_name, None, 0, 3)


DENIED = ApiException(status=403)


async def sent(spawner: Any, error: Exception) -> bool:
    """Whether a pod that the API server answers with an error is done with."""
    spawner.api = SimpleNamespace(create_namespaced_pod=_failing(error))
    made: bool = await spawner.gpuspawner_stock.create_pod(POD, 3)
    return made


async def test_a_request_that_the_api_server_rejects_is_not_sent_again(make) -> None:
    with pytest.raises(ApiException):
        await sent(make(), DENIED)


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("error", LOST, ids=repr)
async def test_an_api_server_that_comes_back_may_not_know_the_hub_s_rights_at_first(
    make, error
) -> None:
    spawner = make()
    assert not await sent(spawner, error)

    await asyncio.sleep(9)
    assert not await sent(spawner, DENIED)

    await asyncio.sleep(2)
    with pytest.raises(ApiException):
        await sent(spawner, DENIED)


@pytest.mark.usefixtures("clock")
async def test_an_api_server_without_roles_is_believed_only_after_ten_seconds(make) -> None:
    """Other spawners' connections were lost, or the view's."""
    spawner = make()
    denied = ApiException(status=403)
    why = 'pods is forbidden: User "hub" cannot create resource "pods" in API group ""'
    denied.body = json.dumps({"kind": "Status", "message": why})
    assert not await sent(spawner, denied)
    await asyncio.sleep(9)
    assert not await sent(spawner, denied)

    await asyncio.sleep(2)
    with pytest.raises(ApiException):
        await sent(spawner, denied)

    await asyncio.sleep(60)
    assert not await sent(spawner, denied)


def _failing(error: Exception) -> Callable[..., Awaitable[None]]:
    async def request(*_: object, **__: object) -> None:
        raise error

    return request
