"""Accelerators as the source of servers; tests/hub/gates/test_options.py tests them in a hub."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from jupyterhub import orm
from kubespawner import KubeSpawner

from gpuspawner import GPUSpawner
from gpuspawner.cluster.unwatched_objects import RuntimeClasses
from gpuspawner.gates.accelerators import Accelerators, AllowedVariants
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.user_options import GPURequest
from gpuspawner.offers.vendors import INSTANCE_TYPE
from gpuspawner.preflight.availability import State
from gpuspawner.preflight.decision import Refuse, Start
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.spawner import in_front_of
from tests.unit.makers.courses import NODES, OFFERS, begin
from tests.unit.makers.hubs import (
    A100,
    TAINT,
    StillHub,
    named,
    rows_of,
    tolerating,
)
from tests.unit.makers.profile_clusters import TAINTED, TWO_GPUS
from tests.unit.makers.profile_lists import CPU
from tests.unit.makers.scripted import ScriptedServer, after, obj, page
from tests.unit.makers.worlds import (
    HOSTNAME,
    NAMESPACE,
    labelled,
    named_node,
    node,
    pod,
    waiting,
)
from tests.waiting import UNIT_PATIENCE as PATIENCE


def mount_course(spawner: Any) -> None:
    spawner.working_dir = spawner.user_options["course"]


ADMINISTRATORS = [
    {"apply_user_options": print},
    {"options_from_form": print},
    {"pre_spawn_hook": mount_course},
]
OPTIONS = {"gpus": 1, "course": "ml"}


@pytest.mark.parametrize(
    ("traits", "split"),
    [({}, (OPTIONS, {})), *((it, ({"gpus": 1}, {"course": "ml"})) for it in ADMINISTRATORS)],
    ids=["ours alone", "applied", "read from the form", "read by a hook"],
)
def test_other_names_are_those_of_administrators_hooks_if_there_are_any(
    hub_with, traits, split
) -> None:
    accelerators = of(hub_with(), "alice", **traits).gpuspawner_gates.sources.accelerators

    assert accelerators.split(OPTIONS) == split
    assert accelerators.split(["gpus"]) == (["gpus"], {})  # is passed to the parser


async def test_options_that_a_hook_has_added_to_those_of_a_request_are_chosen_too(hub_with) -> None:
    """As an ``auth_state_hook`` may, or an authenticator's ``pre_spawn_start``."""
    spawner = of(hub_with(TWO_GPUS), "alice", pre_spawn_hook=mount_course)
    spawner.orm_spawner = row = orm.Spawner(name="")
    request = SimpleNamespace(body=b'{"accelerator": "a100"}')
    spawner.handler = SimpleNamespace(request=request)
    spawner.user_options = row.user_options = {"accelerator": "a100"}  # as the hub has read them

    spawner.user_options["course"] = "ml"
    requested = await spawner.gpuspawner_gates.sources.current.requested()

    assert requested.options == {"accelerator": "a100", "course": "ml"}


@pytest.mark.parametrize("body", [b"course=ml", b'{"course": "ml"}'])
async def test_options_that_an_administrator_s_own_page_passes_count_and_not_its_request(
    body, hub_with
) -> None:
    spawner = of(hub_with(TWO_GPUS), "alice")
    spawner.orm_spawner = row = orm.Spawner(name="")
    spawner.handler = SimpleNamespace(request=SimpleNamespace(body=body))
    spawner.user_options = row.user_options = {"accelerator": "a100"}  # as the hub stores them

    requested = await spawner.gpuspawner_gates.sources.current.requested()

    assert requested.options == {"accelerator": "a100"}


@pytest.mark.parametrize(
    ("request_", "traits", "gpus"),
    [
        (GPURequest("a100", 2), {}, 2),
        (GPURequest("h100", 1), {}, None),
        (GPURequest("a100", 1), {"node_selector": {"gpu": "v100"}}, None),
    ],
    ids=["on offer", "not on offer", "against the configuration"],
)
async def test_a_variant_is_a_grant_on_offer_with_the_pod_for_it(
    hub_with, request_, traits, gpus
) -> None:
    accelerators = of(hub_with(TWO_GPUS), "ann", **traits).gpuspawner_gates.sources.accelerators
    builder, entitlement = await accelerators.builder(), await accelerators.policing.entitlement()
    asked = Proposal("hub", "ann", {"spec": None}, Grant())

    found = AllowedVariants(builder, entitlement, asked).variant(request_)

    assert (found and found[0].gpus) == gpus


class AsksADirectory(KubeSpawner):
    """A class that never learns what it writes into its pods."""

    async def get_pod_manifest(self) -> Any:
        return await asyncio.Event().wait()


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(
    ("offers", "options"),
    [(OFFERS, {"accelerator": "t4"}), ({"profile_list": [CPU]}, {"profile": "cpu-only"})],
    ids=["accelerators", "profiles"],
)
async def test_a_class_that_never_makes_its_pod_lets_no_start_wait_before_it_has_begun(
    hub_with, offers, options
) -> None:
    """KubeSpawner asks for it in the start, which the hub's start_timeout ends."""
    spawner = hub_with(*NODES).spawner(in_front_of(AsksADirectory), **offers)

    await asyncio.wait_for(begin(spawner, **options), 3600)

    assert isinstance(spawner.gpuspawner_gates.attempt.decision, Start)


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("name", ["uid", "gid", "fs_gid", "supplemental_gids"])
async def test_a_function_that_never_says_who_a_server_runs_as_lets_no_start_wait(
    hub_with, name
) -> None:
    async def never(_: Any) -> Any:
        await asyncio.Event().wait()

    spawner = hub_with(*NODES).spawner(**OFFERS, **{name: never})

    await asyncio.wait_for(begin(spawner, accelerator="t4"), 3600)

    assert isinstance(spawner.gpuspawner_gates.attempt.decision, Start)


NEAR = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"component": "proxy"}}}
APART = {**NEAR, "labelSelector": {"matchLabels": {"component": "singleuser-server"}}}


@pytest.mark.parametrize(
    ("traits", "state"),
    [
        ({"pod_anti_affinity_required": [APART]}, State.BUSY),
        ({"pod_affinity_required": [NEAR]}, State.FREE),
    ],
    ids=["one server on each machine", "beside the hub's proxy"],
)
async def test_the_form_counts_the_pods_of_the_servers_namespace_that_affinity_is_about(
    hub_with, traits, state
) -> None:
    """As the start does: nobody presses the button for a machine that is somebody else's alone."""
    hub = hub_with(named_node("a", 4), *map(component, ("proxy", "singleuser-server")))
    accelerators = of(hub, "ann", namespace=NAMESPACE, **traits).gpuspawner_gates.sources.current

    [row, _] = await rows_of(accelerators)

    assert row.state is state
    started = accelerators.runtime.preflight.decider.check(
        (await accelerators.resolve({"accelerator": "a100"})).proposal
    )
    assert isinstance(started, Start) is (state is State.FREE)


def component(name: str) -> tuple[str, dict[str, Any]]:
    """Return a pod of the hub's namespace, with KubeSpawner's label."""
    made: Any = pod(name, 0, on="a")
    return "Pod", {**made, "metadata": {**made["metadata"], "labels": {"component": name}}}


@pytest.fixture
def made(monkeypatch) -> list[str]:
    """Collects the owner of each pod that is made for a page."""
    owners: list[str] = []
    make = Accelerators.stock_pod

    async def counted(self: Any) -> Any:
        owners.append(self.spawner.user.name)
        return await make(self)

    monkeypatch.setattr(Accelerators, "stock_pod", counted)
    return owners


def of(hub: StillHub, name: str, **traits: Any) -> GPUSpawner:
    return named(hub.spawner(accelerators={"a100": A100}, **traits), name)


async def form(hub: StillHub, name: str, **traits: Any) -> str:
    accelerators = of(hub, name, **traits).gpuspawner_gates.sources.accelerators
    return await accelerators.form()


async def foretold(hub: StillHub, name: str) -> object:
    spawner = of(hub, name)
    choice = await spawner.gpuspawner_gates.sources.accelerators.resolve({"gpus": 1})
    return await hub.runtime(spawner).preflight.foretell(choice.proposal, hub.admission)


@pytest.mark.parametrize(
    "traits",
    [
        {},
        {"environment": {"TOKEN": "{username}"}},
        {"volumes": [{"name": "h", "persistentVolumeClaim": {"claimName": "c-{username}"}}]},
    ],
)
async def test_a_user_whose_pods_are_alike_costs_no_pod(hub_with, made, traits) -> None:
    hub = hub_with(TWO_GPUS)

    first = await form(hub, "ann", **traits)
    second = await form(hub, "bob", **traits)

    assert made == ["ann"]
    assert "2 of 2 free" in first
    assert "2 of 2 free" in second


@pytest.mark.parametrize("cloud", [{}, {"providerID": "gce://project/zone/a"}], ids=["", "cloud"])
async def test_a_page_counts_what_admission_has_added_to_pods_with_an_accelerator(
    hub_with, cloud
) -> None:
    hub = hub_with(("Node", node("a", 2, taints=[TAINT], **cloud)))
    assert 'data-state="free"' not in await form(hub, "ann")
    hub.admission.answer = tolerating

    assert isinstance(await foretold(hub, "bob"), Start)
    assert "2 of 2 free" in await form(hub, "ann")


async def test_what_policies_withhold_is_missing_at_once(course) -> None:
    current: dict[str, Any] = {}
    spawner = course.spawner(lambda _: current, **OFFERS)
    accelerators = spawner.gpuspawner_gates.sources.accelerators
    assert 'data-accelerator="v100"' in await accelerators.form()

    current = {"t4-alone": {"accelerators": ["t4"]}}

    assert 'data-accelerator="v100"' not in await accelerators.form()
    rows = await rows_of(accelerators)
    assert [it.accelerator.key for it in rows if it.accelerator] == ["t4"]


async def test_a_pod_that_cannot_be_made_yet_is_nobody_else_s(hub_with, monkeypatch) -> None:
    hub = hub_with(*NODES)
    make = Accelerators.stock_pod

    async def failing(self: Any) -> Any:
        return None if self.spawner.user.name == "ann" else await make(self)

    monkeypatch.setattr(Accelerators, "stock_pod", failing)

    assert 'data-state="free"' not in await form(hub, "ann")
    assert 'data-state="free"' in await form(hub, "bob")


async def test_a_gpu_is_not_shown_as_free_because_admission_lets_somebody_else_have_it(
    hub_with,
) -> None:
    def only_bob_s(pod: Any) -> Any:
        return tolerating(pod) if pod["metadata"]["name"] == "jupyter-bob" else pod

    hub = hub_with(TAINTED)
    hub.admission.answer = only_bob_s

    assert isinstance(await foretold(hub, "bob"), Start)
    assert isinstance(await foretold(hub, "ann"), Refuse)

    assert 'data-state="free"' not in await form(hub, "ann")


async def test_what_admission_adds_no_more_is_forgotten(hub_with) -> None:
    hub = hub_with(TAINTED)
    hub.admission.answer = tolerating
    assert isinstance(await foretold(hub, "bob"), Start)
    assert 'data-state="free"' in await form(hub, "ann")

    hub.admission.answer = lambda pod: pod
    assert isinstance(await foretold(hub, "bob"), Refuse)

    assert 'data-state="free"' not in await form(hub, "ann")


async def test_the_first_starts_on_k3s_wait_for_the_runtime_classes(hub_with) -> None:
    told = asyncio.Event()
    nvidia = after(told, page(obj("nvidia", handler="nvidia")))
    hub = hub_with(("Node", labelled(node("n", 1), {INSTANCE_TYPE: "k3s"})))
    spawner = hub.spawner()
    async with ScriptedServer(runtimeclasses=[nvidia]).serving() as client:
        runtime = hub.runtime(spawner)
        classes = runtime._runtime_classes = RuntimeClasses(client)
        learning = asyncio.create_task(classes.learn())

        ready = await waiting(spawner.gpuspawner_gates.sources.accelerators.ready(PATIENCE))
        told.set()
        await ready

        assert classes.names == {"nvidia"}
        await learning
