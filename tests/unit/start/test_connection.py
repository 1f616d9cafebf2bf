"""A spawner works without a usable kubeconfig, and connects as soon as there is one."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import ServerDisconnectedError
from jupyterhub import orm
from kubernetes_asyncio.client import ApiException, V1ObjectMeta, V1Pod
from kubernetes_asyncio.config import ConfigException
from kubespawner import KubeSpawner
from kubespawner.clients import load_config
from kubespawner.spawner import PodReflector
from traitlets import TraitError

from gpuspawner import GPUSpawner
from gpuspawner.compat import kubespawner
from gpuspawner.compat.reflecting import telling
from gpuspawner.spawner import in_front_of
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


@pytest.mark.usefixtures("write")
async def test_a_hub_that_starts_without_a_kubeconfig_does_not_forget_running_servers(make) -> None:
    """The hub forgets a server that has ended, but asks one that may run whether it answers."""
    spawner = make()
    row = orm.Server(proto="http", ip="127.0.0.1", port=8888, base_url="/", cookie_name="")
    spawner.orm_spawner = SimpleNamespace(server=row)

    assert await spawner.poll() is None
    spawner._stop_pending = True  # KubeSpawner's `stop` would keep a client that leads nowhere
    assert await spawner.poll() == 1


class Begins(KubeSpawner):
    """A class that has more to set up than KubeSpawner has."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.quota = 1


class BeginsLater(GPUSpawner):
    """As `Begins`, but in front of our class, which lets it go on."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.quota = 1


@pytest.mark.usefixtures("write")
def test_a_class_derived_from_ours_needs_no_kubeconfig(hub_with) -> None:
    row = orm.Spawner(name="")

    assert BeginsLater(_mock=True, hub=hub_with(), orm_spawner=row).quota == 1


async def test_no_class_is_left_half_made_without_a_kubeconfig(write, hub_with) -> None:
    """Its server couldn't start, nor even be stopped if it ran. Nor does KubeSpawner leave it."""
    make = partial(in_front_of(Begins), _mock=True, hub=hub_with())
    with pytest.raises(ConfigException):
        make(orm_spawner=orm.Spawner(name=""))
    assert not hasattr(make(), "quota")  # a command starts none, and judges by recorded files too

    write(TOKEN)
    spawner: Any = make(orm_spawner=orm.Spawner(name=""))
    assert spawner.quota == 1
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

    async def start(self) -> None:
        await self.first_load_future

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


@pytest.mark.parametrize("waiting", range(4))
async def test_so_does_it_however_many_others_waited_for_that_list(
    make, reflectors, waiting
) -> None:
    [reflector], starts = await _listing(make, reflectors, 1 + waiting)

    reflector.first_load_future.set_exception(ConnectionError("lost"))
    errors = await asyncio.gather(*starts, return_exceptions=True)

    assert reflectors == {}
    assert {str(it) for it in errors[1:]} <= {"KubeSpawner couldn't list the pods: lost"}
    # The pages of a start write the user's name into its error.
    assert len(set(map(id, errors))) == 1 + waiting


async def test_a_list_that_takes_too_long_does_so_for_all_who_wait(make, reflectors) -> None:
    [reflector], starts = await _listing(make, reflectors, 2)

    reflector.first_load_future.set_exception(TimeoutError())

    errors = await asyncio.gather(*starts, return_exceptions=True)
    assert [type(it) for it in errors] == [TimeoutError, TimeoutError]


@pytest.mark.parametrize("waiting", range(4))
async def test_a_reflector_that_was_to_be_replaced_serves_all_if_the_new_one_fails(
    make, reflectors, waiting
) -> None:
    before = await make()._start_reflector("pods", Quick)
    [listing], [first, *others] = await _listing(make, reflectors, 1 + waiting, replace=True)

    listing.first_load_future.set_exception(ConnectionError())

    assert await asyncio.gather(*others) == [before] * waiting
    with pytest.raises(ConnectionError):
        await first
    assert [*reflectors.values()] == [before]


async def test_two_replacements_at_the_same_time_are_one(make, reflectors) -> None:
    before = await make()._start_reflector("pods", Quick)
    [listing], [first] = await _listing(make, reflectors, 1, replace=True)
    [same], [second] = await _listing(make, reflectors, 1, replace=True)
    assert same is listing

    listing.first_load_future.set_exception(ConnectionError())

    assert await second is before
    with pytest.raises(ConnectionError):
        await first
    assert [*reflectors.values()] == [before]


async def test_a_list_whose_start_was_cancelled_can_still_fail(make, reflectors) -> None:
    [reflector], [start] = await _listing(make, reflectors, 1)
    start.cancel()
    await asyncio.gather(start, return_exceptions=True)

    reflector.first_load_future.set_exception(ConnectionError())
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert reflectors == {}
    assert await make()._start_reflector("pods", Quick)


async def _listing(
    make: Any, reflectors: dict[object, Any], count: int, **kwargs: Any
) -> tuple[list[Any], list[asyncio.Future[Any]]]:
    """Return the reflector that lists, and starts that wait for it; the first has made it."""
    starts = []
    for _ in range(count):
        starts.append(asyncio.ensure_future(make()._start_reflector("pods", Listing, **kwargs)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        kwargs = {}
    return [*reflectors.values()], starts


class InOutage(PodReflector):
    """A reflector whose API server is away from the 10th second to the 200th."""

    async def _list_and_update(self, resource_version: str | None = None) -> str:
        del resource_version
        now = asyncio.get_running_loop().time()
        if not self.first_load_future.done():
            self._began = now
            self.first_load_future.set_result(None)
        if 10 <= now - self._began < 200:
            raise ConnectionError
        self.resources = OLD if now - self._began < 10 else NEW
        return "1"


OLD = {"hub/old": {"metadata": {"name": "old"}}}
NEW = {"hub/new": {"metadata": {"name": "new"}}}


class Watch:
    """A watch without events, which ends when the API server goes."""

    def stream(self, *_: object, **__: object) -> "Watch":
        return self

    async def __aenter__(self) -> "Watch":
        return self

    async def __aexit__(self, *_: object) -> None: ...

    async def __aiter__(self) -> AsyncIterator[object]:
        await asyncio.sleep(10)
        raise ConnectionError
        yield

    def stop(self) -> None: ...

    async def close(self) -> None: ...


@pytest.fixture
def outages(clock, reflectors, monkeypatch) -> None:
    """Let each watch end soon; the test's clock and reflectors are its own."""
    del clock, reflectors
    monkeypatch.setattr("kubespawner.reflector.watch.Watch", Watch)


@pytest.mark.usefixtures("outages")
async def test_after_an_outage_of_any_length_kubespawner_sees_pods_again(make) -> None:
    """Its reflector gives up after 51 s. Without it, each start fails until the hub restarts."""
    reflector = await make()._start_reflector("pods", InOutage)
    try:
        await asyncio.sleep(190)
        assert reflector.pods == OLD

        await asyncio.sleep(45)
        assert reflector.pods == NEW
    finally:
        await reflector.stop()


@pytest.mark.usefixtures("outages")
async def test_a_reflector_can_be_replaced_while_it_waits_for_the_api_server(make) -> None:
    reflector = await make()._start_reflector("pods", InOutage)
    await asyncio.sleep(100)

    assert await make()._start_reflector("pods", Quick, replace=True) is not reflector


class Denied(PodReflector):
    """A reflector that loses the right to list."""

    lists = 0

    async def _list_and_update(self, resource_version: str | None = None) -> str:
        del resource_version
        self.lists += 1
        if self.first_load_future.done():
            raise ApiException(status=403)
        self.first_load_future.set_result(None)
        return "1"


@pytest.mark.usefixtures("outages")
async def test_without_the_right_to_list_pods_kubespawner_asks_every_ten_minutes(make) -> None:
    """It logs an error each time."""
    reflector = await make()._start_reflector("pods", Denied)
    await asyncio.sleep(3600)
    in_an_hour = reflector.lists

    await asyncio.sleep(3600)

    await reflector.stop()
    assert reflector.lists - in_an_hour == 6


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
