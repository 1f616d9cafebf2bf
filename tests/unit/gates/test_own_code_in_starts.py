"""Whole starts on hubs whose own code places servers: nobody is refused for what others saw."""

from __future__ import annotations

import functools
import sys
import types
from types import SimpleNamespace
from typing import Any

import pytest
from jupyterhub.utils import maybe_future
from kubernetes_asyncio.client import V1Toleration
from kubespawner import KubeSpawner

from gpuspawner import GPUSpawner
from gpuspawner.gates.preview import preview
from gpuspawner.preflight.decision import Start
from gpuspawner.preflight.rejection import Denied, Of, Rejection
from gpuspawner.spawner import in_front_of
from gpuspawner.start.refusal import Refusal
from tests.unit.makers.courses import begin
from tests.unit.makers.hubs import A100, named
from tests.unit.makers.worlds import labelled, node, pod

TAINT = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}
TOLERATION = {"key": "dedicated", "operator": "Exists"}
FULL = ("Node", labelled(node("a", 2), {"gpu": "a100"}))
TAINTED = ("Node", labelled(node("a", 4, taints=[TAINT]), {"gpu": "a100"}))


def made(hub: Any, name: str, kind: Any = GPUSpawner, **traits: Any) -> Any:
    """Return the spawner of a server that the hub has begun to start."""
    offers = {} if "profile_list" in traits else {"accelerators": {"a100": A100}}
    spawner: Any = named(hub.spawner(kind, autoscaling="none", **offers, **traits), name)
    spawner.userdata = ["gpu"] if name == "bob" else []
    spawner._spawn_pending = True
    return spawner


async def start(spawner: Any, **options: Any) -> None:
    """Run a whole start as the hub and KubeSpawner do, up to the pod's creation."""

    async def create(*_: Any) -> None:
        return None

    spawner.api.create_namespaced_pod = create
    await begin(spawner, **(options or {"accelerator": "a100"}))

    async def run_start() -> None:
        await spawner.load_user_options()
        pod = await spawner.get_pod_manifest()
        if spawner.modify_pod_hook:
            pod = await maybe_future(spawner.modify_pod_hook(spawner, pod))
        await spawner._make_create_pod_request(pod, 3)

    if isinstance(spawner, Helper):
        spawner.give_gpu()
    await run_start()
    spawner.clear_state()


class Helper(KubeSpawner):
    def give_gpu(self) -> None:
        if self.user.name == "bob":
            self.tolerations = [TOLERATION]

    def start(self) -> Any:
        self.give_gpu()
        return super().start()


class Plugin:
    def is_allowed(self, spawner: Any) -> bool:
        return spawner.user.name == "bob"

    def hook(self, spawner: Any) -> None:
        if self.is_allowed(spawner):
            spawner.tolerations = [TOLERATION]


def for_bob(hook: Any) -> Any:
    @functools.wraps(hook)
    def wrapper(spawner: Any) -> None:
        if spawner.user.name == "bob":
            hook(spawner)

    return wrapper


@for_bob
def decorated(spawner: Any) -> None:
    spawner.tolerations = [TOLERATION]


def by_annotation(_: Any, pod: Any) -> Any:
    if pod.metadata.annotations["hub.jupyter.org/username"] == "bob":
        pod.spec.tolerations = [V1Toleration(**TOLERATION)]
    return pod


def by_name(spawner: Any, pod: Any) -> Any:
    if spawner.pod_name == "jupyter-bob":
        pod.spec.tolerations = [V1Toleration(**TOLERATION)]
    return pod


def userdata_hook(spawner: Any, auth_state: Any) -> None:
    spawner.userdata = auth_state["groups"]


def by_userdata(spawner: Any) -> None:
    if "gpu" in spawner.userdata:
        spawner.tolerations = [TOLERATION]


_policy: Any = types.ModuleType("mylab_policy")
_policy.TOLERATIONS = [TOLERATION]
exec(
    "def apply(s):\n    if s.user.name == 'bob': s.tolerations = TOLERATIONS",
    _policy.__dict__,
)
sys.modules["mylab_policy"] = _policy


def importing(spawner: Any) -> None:
    from mylab_policy import apply

    apply(spawner)


@functools.lru_cache
def gpu_users() -> set[str]:
    return {"bob"}


class _User:
    def __init__(self, spawner: Any) -> None:
        self.may = spawner.user.name in gpu_users()


def by_object(spawner: Any) -> None:
    if _User(spawner).may:
        spawner.tolerations = [TOLERATION]


@functools.lru_cache
def may(spawner: Any) -> bool:
    return spawner.user.name == "bob"


def by_cached(spawner: Any) -> None:
    if may(spawner):
        spawner.tolerations = [TOLERATION]


_plugin = Plugin()


def by_plugin(spawner: Any) -> None:
    if _plugin.is_allowed(spawner):
        spawner.tolerations = [TOLERATION]


def by_env(spawner: Any) -> None:
    if spawner.get_env()["JUPYTERHUB_USER"] == "bob":
        spawner.tolerations = [TOLERATION]


def by_template(spawner: Any) -> None:
    if spawner._expand_user_properties("{username}") == "bob":
        spawner.tolerations = [TOLERATION]


SHAPES: dict[str, dict[str, Any]] = {
    "method": {"kind": in_front_of(Helper)},
    "bound": {"pre_spawn_hook": Plugin().hook},
    "wraps": {"pre_spawn_hook": decorated},
    "annotation": {"modify_pod_hook": by_annotation},
    "name": {"modify_pod_hook": by_name},
    "userdata": {"auth_state_hook": userdata_hook, "pre_spawn_hook": by_userdata},
    "import": {"pre_spawn_hook": importing},
    "object": {"pre_spawn_hook": by_object},
    "cached": {"pre_spawn_hook": by_cached},
    "plugin": {"pre_spawn_hook": by_plugin},
    "env": {"pre_spawn_hook": by_env},
    "template": {"pre_spawn_hook": by_template},
    "partial": {"pre_spawn_hook": functools.partial(by_plugin)},
}


@pytest.mark.parametrize("traits", SHAPES.values(), ids=SHAPES)
async def test_code_that_lets_bob_on_a_node_does_so_though_alice_was_refused(
    hub_with, traits
) -> None:
    hub = hub_with(TAINTED)

    with pytest.raises(Refusal):
        await start(made(hub, "alice", **traits))
    await start(made(hub, "bob", **traits))


async def test_a_user_who_gets_the_right_later_starts(hub_with) -> None:
    """A directory says who may use GPUs; ann is added to it an hour after she was refused."""
    members: set[str] = set()

    def hook(spawner: Any) -> None:
        if spawner.user.name in members:
            spawner.tolerations = [TOLERATION]

    hub = hub_with(TAINTED)
    with pytest.raises(Refusal):
        await start(made(hub, "ann", pre_spawn_hook=hook))
    members.add("ann")
    await start(made(hub, "ann", pre_spawn_hook=hook))


async def test_a_hook_that_opens_the_nodes_at_night_opens_them(hub_with) -> None:
    hour = [12]

    def hook(spawner: Any) -> None:
        if hour[0] > 20:
            spawner.tolerations = [TOLERATION]

    hub = hub_with(TAINTED)
    with pytest.raises(Refusal):
        await start(made(hub, "ann", pre_spawn_hook=hook))
    hour[0] = 22
    await start(made(hub, "ann", pre_spawn_hook=hook))


def by_amount(_: Any, pod: Any) -> Any:
    """Whole machines are for those who want more than one GPU."""
    if int(pod.spec.containers[0].resources.limits["nvidia.com/gpu"]) > 1:
        pod.spec.tolerations = [V1Toleration(**TOLERATION)]
    return pod


async def test_a_hook_that_looks_at_how_many_gpus_the_pod_has(hub_with) -> None:
    hub = hub_with(TAINTED, ("Node", labelled(node("b", 1), {"gpu": "a100"})))
    await start(
        made(hub, "ann", modify_pod_hook=by_amount),
        accelerator="a100",
        gpus=1,
    )
    await start(
        made(hub, "bob", modify_pod_hook=by_amount),
        accelerator="a100",
        gpus=2,
    )


def prefers(_: Any, pod: Any) -> Any:
    """The classic: all servers with a GPU go to the pool of GPUs."""
    pod.spec.node_selector = {**(pod.spec.node_selector or {}), "pool": "gpu"}
    return pod


def choice(gpu: str) -> dict[str, Any]:
    override = {"node_selector": {"gpu": gpu}, "extra_resource_limits": {"nvidia.com/gpu": "1"}}
    return {"display_name": gpu, "kubespawner_override": override}


LIST = [
    {
        "display_name": "GPU",
        "slug": "gpu",
        "profile_options": {
            "model": {
                "display_name": "Model",
                "choices": {"t4": choice("t4"), "a100": choice("a100")},
            }
        },
    }
]


ONE = {**choice("a100"), "slug": "gpu"}


async def test_another_choice_of_the_same_profile_is_not_judged_by_the_first_one(hub_with) -> None:
    """T4s are all in use, A100s are free."""
    t4 = ("Node", labelled(node("t", 1), {"gpu": "t4", "pool": "gpu"}))
    a100 = ("Node", labelled(node("a", 1), {"gpu": "a100", "pool": "gpu"}))
    hub = hub_with(t4, a100)
    await start(
        made(hub, "ann", profile_list=LIST, modify_pod_hook=prefers), profile="gpu", model="t4"
    )
    hub.view.put("Pod", pod("x", 1, on="t"))
    await start(
        made(hub, "bob", profile_list=LIST, modify_pod_hook=prefers), profile="gpu", model="a100"
    )


def by_model(_: Any, pod: Any) -> Any:
    if (pod.spec.node_selector or {}).get("gpu") == "a100":
        pod.spec.tolerations = [V1Toleration(**TOLERATION)]
    return pod


async def test_a_hook_that_looks_at_the_choice_through_the_pod(hub_with) -> None:
    t4 = ("Node", labelled(node("t", 1), {"gpu": "t4"}))
    hub = hub_with(t4, TAINTED)
    await start(
        made(hub, "ann", profile_list=LIST, modify_pod_hook=by_model), profile="gpu", model="t4"
    )
    await start(
        made(hub, "bob", profile_list=LIST, modify_pod_hook=by_model), profile="gpu", model="a100"
    )


def harmless(_: Any, pod: Any) -> Any:
    """Every pod may run on spot machines."""
    spot = V1Toleration(key="spot", operator="Exists")
    pod.spec.tolerations = [*(pod.spec.tolerations or ()), spot]
    return pod


def with_priority(spawner: Any) -> None:
    spawner.priority_class_name = "teachers" if spawner.user.name == "bob" else ""


TEACHERS = ("PriorityClass", {"metadata": {"name": "teachers"}, "value": 1000})


@pytest.mark.parametrize(
    ("offers", "chosen"),
    [({}, {"accelerator": "a100"}), ({"profile_list": [ONE]}, {"profile": "gpu"})],
    ids=["accelerators", "profiles"],
)
async def test_a_hook_may_give_a_priority_for_which_others_end(hub_with, offers, chosen) -> None:
    batch = ("Pod", pod("batch", 1, on="a", priority=0))
    hub = hub_with(("Node", labelled(node("a", 1), {"gpu": "a100"})), batch, TEACHERS)
    hub.view.state.mark_known("PriorityClass")
    traits: Any = {"pre_spawn_hook": with_priority, **offers}

    with pytest.raises(Refusal):
        await start(made(hub, "ann", **traits), **chosen)
    await start(made(hub, "bob", **traits), **chosen)


def with_a_team(_: Any, pod: Any) -> Any:
    pod.metadata.labels = {**(pod.metadata.labels or {}), "team": "x"}
    return pod


NO_TEAM = Rejection(Of.POD, Denied("a server needs a team"), "denied")


@pytest.mark.parametrize(
    ("offers", "chosen"),
    [
        ({}, {"accelerator": "a100"}),
        ({"profile_list": [ONE]}, {"profile": "gpu"}),
    ],
    ids=["accelerators", "profiles"],
)
async def test_a_policy_of_the_cluster_is_kept_by_the_pod_that_a_hook_has_changed(
    hub_with, offers, chosen
) -> None:
    hub = hub_with(("Node", labelled(node("a", 2), {"gpu": "a100", "pool": "gpu"})))
    hub.admission.answer = lambda pod: pod if "team" in pod["metadata"]["labels"] else NO_TEAM
    by_form = {f"opt-{name}": [value] for name, value in chosen.items()}

    def spawner(**traits: Any) -> Any:
        of_ann = made(hub, "ann", **offers, **traits)
        of_ann._spawn_pending = False
        return of_ann

    ann = spawner(modify_pod_hook=with_a_team)
    await ann.options_from_query(by_form)
    ann._spawn_pending = True
    await start(ann, **chosen)

    with pytest.raises(Refusal, match="needs a team"):
        await spawner().options_from_query(by_form)
    with pytest.raises(Refusal, match="needs a team"):
        await start(made(hub, "ann", modify_pod_hook=prefers, **offers), **chosen)


GROUPS = {"gpus": {"groups": ["gpus"], "spawner_override": {"tolerations": [TOLERATION]}}}


async def test_what_groups_get_is_not_lost_by_what_was_seen_of_others(hub_with) -> None:
    hub = hub_with(TAINTED)
    traits: Any = {
        "modify_pod_hook": harmless,
        "group_overrides": GROUPS,
    }
    with pytest.raises(Refusal):  # she isn't in the group
        await start(made(hub, "ann", **traits))
    bob = made(hub, "bob", **traits)
    bob.user.groups = [SimpleNamespace(name="gpus")]
    await bob.apply_group_overrides()  # as the hub does before the second gate
    await start(bob)


OF_TEAM = {
    "waits in its queue": ({"kueue_queue": "team", "namespace": "of-team"}, ("of-team", "team")),
    "is not checked": ({"preflight": "off"}, ("default", "")),
}


@pytest.mark.parametrize(("override", "place"), OF_TEAM.values(), ids=OF_TEAM)
async def test_a_form_knows_what_a_group_gets_when_it_starts(override, place, hub_with) -> None:
    groups = {"team": {"groups": ["team"], "spawner_override": override}}
    hub, options = hub_with(FULL, ("Pod", pod("other", 2, on="a"))), {"accelerator": "a100"}
    hub.admission.answer = lambda _: None  # else, it would show that Kueue leaves the pod alone
    ann = made(hub, "ann", kueue_queue="", group_overrides=groups)
    ann._spawn_pending = False
    with pytest.raises(Refusal):
        await ann.run_options_from_form({"accelerator": ["a100"]})

    ann.user.groups = [SimpleNamespace(name="team")]

    accelerators = ann.gpuspawner_gates.sources.accelerators
    proposal = (await accelerators.resolve(options)).proposal
    assert (proposal.namespace, proposal.queue) == place
    assert isinstance((await preview(accelerators, options, "train"))[0], Start)
    assert await ann.run_options_from_form({"accelerator": ["a100"]})


async def test_a_form_refuses_what_is_checked_for_a_group_alone(hub_with) -> None:
    groups = {"team": {"groups": ["team"], "spawner_override": {"preflight": "enforce"}}}
    hub = hub_with(FULL, ("Pod", pod("other", 2, on="a")))
    ann = made(hub, "ann", preflight="off", group_overrides=groups)
    ann._spawn_pending = False
    assert await ann.run_options_from_form({"accelerator": ["a100"]})

    ann.user.groups = [SimpleNamespace(name="team")]

    with pytest.raises(Refusal):
        await ann.run_options_from_form({"accelerator": ["a100"]})
