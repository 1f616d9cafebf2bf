"""What the doctor says of a server that it has started; a real hub is in tests/hub/doctor."""

import asyncio
from contextlib import asynccontextmanager
from types import MappingProxyType, SimpleNamespace

import pytest
from traitlets.config import Config

from gpuspawner.doctor import trial
from gpuspawner.doctor.hub import NoSpawnerError
from gpuspawner.doctor.hub_api import HubApiError, NoHubError
from gpuspawner.doctor.trial import Trial, _facts, _not_started
from gpuspawner.gates.what_if import imagined
from gpuspawner.messages.administrators import Severity
from gpuspawner.policies.owner import Owner
from gpuspawner.spawner import GPUSpawner
from tests.unit.makers.scripted import ScriptedServer, failure, obj, page
from tests.unit.makers.starts import CLOUD_METADATA, IMAGE, NOTEBOOK, TOOLS, event, start


def test_it_says_on_which_node_and_how_long_each_image_was_pulled():
    events = [
        event("Pulled", f'Container image "{TOOLS}" already present on machine', 3,
              container=CLOUD_METADATA),
        event("Pulled", f'Successfully pulled image "{IMAGE}" in 1m3.25s', 70, container=NOTEBOOK),
    ]  # fmt: skip

    assert [*_facts(start(node="t4-0"), events)] == [
        "on the node t4-0 without GPUs.",
        f"The image {TOOLS} was on the node.",
        f"The image {IMAGE} was pulled in 63.2 s.",
    ]


@pytest.mark.parametrize(
    ("refused", "advised"),
    [
        (HubApiError(403, "no"), "Give the token the scope servers!user=ann,"),
        (HubApiError(404, "no"), "Give the token the scope servers!user=ann,"),
        (HubApiError(503, "no"), "Read the hub's log,"),
        (NoHubError(503, "no"), "Look whether the hub is up, and whether --hub-api names its"),
    ],
)
def test_the_advice_is_about_what_went_wrong(refused, advised):
    found = _not_started("ann", refused)

    assert found.text == "ann's server didn't start: no"
    assert found.advice.startswith(advised)


class StubApi:
    """A hub's REST API that refuses a start, or its end, or neither."""

    def __init__(self, start=0, end=0):
        self._refusals = {"POST": start, "DELETE": end}

    async def ask(self, method, *_):
        if status := self._refusals[method]:
            raise HubApiError(status, f"HTTP {status}: no")


class SlowApi(StubApi):
    """One that is busy before it makes a server, as with a limit that is a coroutine."""

    async def ask(self, method, *_):
        if method == "POST":
            await asyncio.Event().wait()
        await super().ask(method)


@asynccontextmanager
async def trial_of(
    api,
    *,
    server="doctor-1",
    namespaces=False,
    labels=MappingProxyType({}),
    tell=lambda _: None,
    **scripts,
):
    """Yield the trial of ann's server, perhaps in a namespace of ann's, with traits for labels."""
    owner, namespace = Owner("ann", server=server), {} if namespaces else {"namespace": "hub"}
    traits = {"enable_user_namespaces": namespaces, **namespace, **labels}
    async with ScriptedServer(**scripts).serving() as client:
        hub = SimpleNamespace(
            owner=owner,
            spawner=imagined(GPUSpawner, Config(KubeSpawner=traits), owner),
            runtime=SimpleNamespace(client=client),
        )
        yield Trial(hub, api, tell)


@pytest.mark.parametrize(
    ("pod", "claim", "told"),
    [
        ([200], 200, []),
        ([500, 429, 200], 200, []),
        ([200], 404, []),
        ([200], 403, ["HTTP 403 for its claim claim-7-doctor-1"]),
        ([403], 200, ["HTTP 403: scripted"]),
    ],
)
async def test_it_says_so_unless_the_pod_and_the_claim_are_gone(pod, claim, told, monkeypatch):
    monkeypatch.setattr(trial, "_LOOK_SECONDS", 0)
    deleted = page() if claim == 200 else failure(claim)
    scripts = {
        "pods": [page() if it == 200 else failure(it) for it in pod],
        "persistentvolumeclaims": [page(obj("claim-7"), obj("claim-7-doctor-1", namespace="hub"))],
        "claim-7-doctor-1": [deleted],
    }

    async with trial_of(StubApi(), **scripts) as tried:
        left = await tried._removed()

    assert [it.text for it in left] == [
        f"It isn't certain whether the server was removed: {why}." for why in told
    ]


@pytest.mark.parametrize("namespaces", [False, True])
async def test_the_pod_and_the_claim_are_found_without_their_names(namespaces, monkeypatch):
    monkeypatch.setattr(trial, "_LOOK_SECONDS", 0)
    asked = []

    def heard(step):
        async def answer(request):
            asked.append(f"{request.method} {request.path_qs}")
            return await step(request)

        return answer

    where = "ann-7" if namespaces else "hub"
    claims = obj("home-7", namespace=where), obj("home-7-doctor-2d1", namespace=where)
    scripts = {
        "pods": [heard(page(obj("server-7", namespace=where))), heard(page())],
        "persistentvolumeclaims": [heard(page(*claims))],
        "home-7-doctor-2d1": [heard(page())],
    }

    async with trial_of(StubApi(), namespaces=namespaces, **scripts) as tried:
        assert await tried._removed() == []

    place = "/api/v1" if namespaces else "/api/v1/namespaces/hub"
    owner = "labelSelector=hub.jupyter.org/username%3Dann"
    pods = f"GET {place}/pods?labelSelector=hub.jupyter.org/servername%3Ddoctor-1"
    assert asked == [
        *(pods, pods),
        f"GET {place}/persistentvolumeclaims?{owner}",
        f"DELETE /api/v1/namespaces/{where}/persistentvolumeclaims/home-7-doctor-2d1",
    ]


@pytest.mark.parametrize(
    ("server", "selector"),
    [
        ("doctor-1", "hub.jupyter.org/servername=doctor-1"),
        ("", "hub.jupyter.org/username=team,hub.jupyter.org/servername="),
    ],
)
async def test_labels_of_the_configuration_do_not_hide_the_pod_and_its_claim(server, selector):
    labels = {
        "extra_labels": {"hub.jupyter.org/username": "team"},
        "storage_extra_labels": {"hub.jupyter.org/username": "files"},
    }
    async with trial_of(StubApi(), server=server, labels=labels) as tried:
        assert tried._of_server == selector
        assert tried._of_claim == "hub.jupyter.org/username=files"


async def test_a_label_with_the_id_that_only_the_hub_knows_hides_neither_pod_nor_claim():
    def default_of(name):
        return {"metadata": {"uid": name, "annotations": {"hub.jupyter.org/username": name}}}

    of_id = {"hub.jupyter.org/username": "u-{userid}"}
    labels = {"extra_labels": of_id, "storage_extra_labels": of_id}
    pods = [page(default_of("bob"), default_of("ann"), {"metadata": {"uid": "bare"}})]

    async with trial_of(StubApi(), server="", labels=labels, pods=pods) as tried:
        assert tried._of_server == "hub.jupyter.org/servername="
        assert tried._of_claim == ""
        assert "--selector hub.jupyter.org/servername= " in tried._where_to_look()
        assert [it.metadata.uid for it in await tried._pods(trial._Object)] == ["ann"]


@pytest.mark.parametrize("name", ["extra_labels", "storage_extra_labels"])
async def test_labels_with_which_no_server_starts_are_left_to_the_hub_to_tell(name):
    async with trial_of(StubApi(), server="", labels={name: {"of": "{nobody}"}}) as tried:
        assert tried._of_server == "hub.jupyter.org/username=ann,hub.jupyter.org/servername="
        assert tried._of_claim == "hub.jupyter.org/username=ann"


async def test_a_default_server_of_another_hub_is_not_taken_for_this_one(monkeypatch):
    monkeypatch.setattr(trial, "_LOOK_SECONDS", 0)
    theirs = {"metadata": {"name": "jupyter-ann", "namespace": "other", "uid": "theirs"}}
    ours = {"metadata": {"name": "jupyter-ann", "namespace": "ann", "uid": "ours"}}
    pods = [page(theirs), page(theirs, ours), page(theirs)]

    async with trial_of(StubApi(500), server="", namespaces=True, pods=pods) as tried:
        tried._others = await tried._seen()
        assert await tried._has_pod()
        assert await tried._removed() == []


@pytest.mark.parametrize(
    ("start", "end", "told"),
    [
        (400, 404, ["start"]),
        (403, 404, ["start"]),
        (429, 0, ["start"]),
        (409, 503, ["start", "start-left"]),
        (504, 404, ["start", "start-left"]),  # of a proxy that doesn't wait for the hub
    ],
)
async def test_a_server_that_the_hub_refuses_to_make_is_none_that_may_be_left(start, end, told):
    gone = {"pods": [page()], "persistentvolumeclaims": [page()]}

    async with trial_of(StubApi(start, end), **gone) as tried:
        found = await tried.run({})

    assert [it.id for it in found] == told


class BusyApi(StubApi):
    """One whose user has pressed Start since the doctor looked; it follows that start."""

    def __init__(self):
        super().__init__()
        self.asked = []

    async def ask(self, method, *_):
        self.asked.append(method)
        return {"servers": {"": {"pending": "spawn"}}} if method == "GET" else None

    async def follow(self, *_):
        return {"ready": True}


async def test_a_default_server_that_its_user_has_started_meanwhile_is_not_stopped():
    api = BusyApi()

    async with trial_of(api, server="", pods=[page()] * 3) as tried:
        [finding] = await tried.run({})

    assert (finding.id, finding.severity) == ("start", "error")
    assert "the default server is in use" in finding.text
    assert set(api.asked) == {"GET"}


async def test_an_interrupted_start_may_be_left_if_the_hub_makes_its_server_later():
    told = []
    gone = {"pods": [page()], "persistentvolumeclaims": [page()]}

    async with trial_of(SlowApi(end=404), tell=told.append, **gone) as tried:
        starting = asyncio.create_task(tried.run({}))
        await asyncio.sleep(0)
        starting.cancel()
        await asyncio.wait({starting})

    assert starting.cancelled()
    assert told[-1] == "It isn't certain whether the server was removed: HTTP 404: no."


async def test_a_class_that_makes_no_spawner_for_that_server_is_an_error(monkeypatch):
    """The other checks were for a user with groups, and for no new server."""

    @asynccontextmanager
    async def watching(_, owner):
        raise NoSpawnerError(f"Labs: no room for {owner.server}")
        yield

    async def free_name(*_):
        return "doctor-1"

    monkeypatch.setattr(trial, "watching", watching)
    monkeypatch.setattr(trial, "_free_name", free_name)

    (found,) = await trial.try_start(Config(), StubApi(), "ann", {}, print)

    assert (found.id, found.severity) == ("start", Severity.ERROR)
    assert "Labs: no room for doctor-1" in found.text
