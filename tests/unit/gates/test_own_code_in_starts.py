"""Whole starts on hubs whose own code places servers: nobody is refused for what others saw."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from jupyterhub import orm
from jupyterhub.utils import maybe_future
from kubernetes_asyncio.client import V1Toleration
from kubespawner import KubeSpawner

from gpuspawner import GPUSpawner
from gpuspawner.gates.preview import preview
from gpuspawner.kube.quantity import exact_bytes
from gpuspawner.preflight.decision import Difference, Refuse, Start
from gpuspawner.preflight.rejection import Denied, Of, Rejection
from gpuspawner.spawner import in_front_of
from gpuspawner.start.refusal import Refusal
from gpuspawner.web import answers
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


async def start(spawner: Any, **options: Any) -> Any:
    """Run a whole start as the hub and KubeSpawner do; return the pod that is created."""
    sent = []

    async def create(_: object, pod: object) -> None:
        sent.append(pod)

    spawner.api.create_namespaced_pod = create
    await maybe_future(spawner.apply_user_options(spawner, options))
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
    return sent[-1] if sent else None


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


def userdata_hook(spawner: Any, auth_state: Any) -> None:
    spawner.userdata = auth_state["groups"]


def by_userdata(spawner: Any) -> None:
    if "gpu" in spawner.userdata:
        spawner.tolerations = [TOLERATION]


_plugin = Plugin()


def by_plugin(spawner: Any) -> None:
    if _plugin.is_allowed(spawner):
        spawner.tolerations = [TOLERATION]


@pytest.mark.parametrize(
    "traits",
    [
        {"kind": in_front_of(Helper)},
        {"auth_state_hook": userdata_hook, "pre_spawn_hook": by_userdata},
        {"pre_spawn_hook": by_plugin},
    ],
    ids=["a class", "what the login has said", "an object"],
)
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


def prefers(_: Any, pod: Any) -> Any:
    """The classic: all servers with a GPU go to the pool of GPUs."""
    pod.spec.node_selector = {**(pod.spec.node_selector or {}), "pool": "gpu"}
    return pod


def choice(gpu: str) -> dict[str, Any]:
    override = {"node_selector": {"gpu": gpu}, "extra_resource_limits": {"nvidia.com/gpu": "1"}}
    return {"display_name": gpu, "kubespawner_override": override}


MODELS = {"display_name": "Model", "choices": {"t4": choice("t4"), "a100": choice("a100")}}
LIST = [{"display_name": "GPU", "slug": "gpu", "profile_options": {"model": MODELS}}]
ONE = {**choice("a100"), "slug": "gpu"}

EACH_SOURCE = pytest.mark.parametrize(
    ("offers", "chosen"),
    [({}, {"accelerator": "a100"}), ({"profile_list": [ONE]}, {"profile": "gpu"})],
    ids=["accelerators", "profiles"],
)


async def test_another_choice_of_the_same_profile_is_not_judged_by_the_first_one(hub_with) -> None:
    """T4s are all in use, A100s are free."""
    t4 = ("Node", labelled(node("t", 1), {"gpu": "t4", "pool": "gpu"}))
    a100 = ("Node", labelled(node("a", 1), {"gpu": "a100", "pool": "gpu"}))
    hub = hub_with(t4, a100)
    traits: Any = {"profile_list": LIST, "modify_pod_hook": prefers}
    await start(made(hub, "ann", **traits), profile="gpu", model="t4")
    hub.view.put("Pod", pod("x", 1, on="t"))
    await start(made(hub, "bob", **traits), profile="gpu", model="a100")


def by_amount(_: Any, pod: Any) -> Any:
    """Whole machines are for those who want more than one GPU."""
    if int(pod.spec.containers[0].resources.limits["nvidia.com/gpu"]) > 1:
        pod.spec.tolerations = [V1Toleration(**TOLERATION)]
    return pod


def by_memory(_: Any, pod: Any) -> Any:
    if pod.spec.containers[0].resources.limits["memory"] == exact_bytes(2 * 2**30):
        pod.spec.tolerations = [V1Toleration(**TOLERATION)]
    return pod


def by_image(_: Any, pod: Any) -> Any:
    if pod.spec.containers[0].image == "big":
        pod.spec.tolerations = [V1Toleration(**TOLERATION)]
    return pod


def by_course(spawner: Any) -> None:
    if spawner.user_course == "big":
        spawner.tolerations = [TOLERATION]


def remembers_course(spawner: Any, options: Any) -> None:
    spawner.user_course = options["course"]


def by_variable(spawner: Any, pod: Any) -> Any:
    if spawner.environment["COURSE"] == "big":
        pod.spec.tolerations = [V1Toleration(**TOLERATION)]
    return pod


def of_course(name: str) -> dict[str, Any]:
    return {"kubespawner_override": {"environment": {"COURSE": name}}}


COURSES = {"of": {"choices": {it: of_course(it) for it in ("small", "big")}}}
OF_COURSES: Any = {
    "modify_pod_hook": by_variable,
    "profile_list": [{**ONE, "profile_options": COURSES}],
}
THEIRS = {"pre_spawn_hook": by_course, "apply_user_options": remembers_course}
SIZES = {"modify_pod_hook": by_memory, "memory_choices": ["1Gi", "2Gi"]}
IMAGES = {"modify_pod_hook": by_image, "images": {it: {"image": it} for it in ("small", "big")}}
A100S, PROFILE = {"accelerator": "a100"}, {"profile": "gpu"}
CHOSEN = [
    ({"modify_pod_hook": by_amount}, {**A100S, "gpus": 1}, {"gpus": 2}),
    (SIZES, {**A100S, "memory": "1Gi"}, {"memory": "2Gi"}),
    (IMAGES, {**A100S, "image": "small"}, {"image": "big"}),
    (OF_COURSES, {**PROFILE, "of": "small"}, {"of": "big"}),
]


@pytest.mark.parametrize(("traits", "first", "then"), CHOSEN)
async def test_a_hook_may_look_at_whatever_its_user_has_chosen(
    hub_with, traits, first, then
) -> None:
    hub = hub_with(TAINTED, ("Node", labelled(node("b", 1), {"gpu": "a100"})))
    await start(made(hub, "ann", **traits), **first)
    hub.view.put("Pod", pod("x", 1, on="b"))

    with pytest.raises(Refusal):  # what is known stays known
        await begin(made(hub, "ann", **traits), **first)
    await start(made(hub, "ann", **traits), **{**first, **then})


@EACH_SOURCE
async def test_a_hook_may_look_at_what_was_kept_of_options_of_its_own(
    hub_with, offers, chosen
) -> None:
    hub = hub_with(TAINTED, ("Node", labelled(node("b", 1), {"gpu": "a100"})))
    traits: Any = {**THEIRS, **offers}
    await start(made(hub, "ann", **traits), **chosen, course="small")
    hub.view.put("Pod", pod("x", 1, on="b"))

    await start(made(hub, "ann", **traits), **chosen, course="big")


def by_pool(_: Any, pod: Any) -> Any:
    """In place of each other: small servers go to one pool, and large ones to another."""
    is_big = pod.spec.containers[0].resources.limits["memory"] == exact_bytes(2 * 2**30)
    pod.spec.node_selector = {"pool": "big" if is_big else "small"}
    return pod


async def test_a_choice_is_known_after_another_one_was_expected_of_it(hub_with) -> None:
    nodes = [
        ("Node", labelled(node(it, 2), {"gpu": "a100", "pool": it})) for it in ("small", "big")
    ]
    hub = hub_with(*nodes)
    traits = {**SIZES, "modify_pod_hook": by_pool}
    for memory in ("1Gi", "2Gi"):
        await start(made(hub, "ann", **traits), **A100S, memory=memory)
    hub.view.put("Pod", pod("x", 2, on="big"))

    with pytest.raises(Refusal):
        await begin(made(hub, "ann", **traits), **A100S, memory="2Gi")
    await start(made(hub, "ann", **traits), **A100S, memory="1Gi")


def by_user(spawner: Any, pod: Any) -> Any:
    if spawner.user.name == "ann":
        pod.spec.tolerations = [V1Toleration(**TOLERATION)]
    return pod


@pytest.mark.parametrize(
    "offers",
    [{}, {"images": IMAGES["images"]}, {"memory_choices": ["2Gi", "1Gi"]}, {"cpu_choices": [2, 1]}],
)
@pytest.mark.parametrize(("used", "state"), [(0, "free"), (4, "busy")])
async def test_a_form_knows_what_a_start_with_the_defaults_has_shown(
    hub_with, offers, used, state
) -> None:
    hub = hub_with(TAINTED)
    await start(made(hub, "ann", modify_pod_hook=by_user, **offers))
    hub.view.put("Pod", pod("x", used, on="a"))
    spawner = made(hub, "ann", modify_pod_hook=by_user, **offers)
    spawner._spawn_pending = False

    found = await answers.states(spawner.gpuspawner_gates.sources.accelerators)

    assert found["accelerators"][0]["state"] == state


@pytest.mark.parametrize(
    ("offers", "state"), [({}, "busy"), ({"images": IMAGES["images"]}, "unknown")]
)
async def test_a_form_does_not_know_what_a_start_with_other_choices_has_shown(
    hub_with, offers, state
) -> None:
    hub = hub_with(TAINTED, ("Node", labelled(node("b", 1), {"gpu": "a100"})))
    traits = {"modify_pod_hook": by_user, **offers}
    await start(made(hub, "bob", **traits))
    hub.view.put("Pod", pod("x", 1, on="b"))
    spawner = made(hub, "bob", **traits)
    spawner._spawn_pending = False

    found = await answers.states(spawner.gpuspawner_gates.sources.accelerators)

    assert found["accelerators"][0]["state"] == state


async def test_a_form_calls_nothing_absent_of_which_it_does_not_know_where_it_may_go(
    hub_with,
) -> None:
    hub = hub_with(TAINTED, ("Pod", pod("x", 4, on="a")))
    spawner = made(hub, "ann", modify_pod_hook=by_user)
    spawner._spawn_pending = False

    found = await answers.states(spawner.gpuspawner_gates.sources.accelerators)

    row = found["accelerators"][0]
    assert (row["state"], row["word"], row["gpus"]["total"]) == ("busy", "In use", 4)


def to_staff(spawner: Any, pod: Any) -> Any:
    if spawner.user.name == "ann":
        pod.spec.node_selector = {**(pod.spec.node_selector or {}), "pool": "staff"}
    return pod


async def test_nothing_is_offered_that_the_last_start_shows_to_be_in_use(hub_with) -> None:
    nodes = [
        ("Node", labelled(node(it, 1), {"gpu": "a100", "pool": it})) for it in ("staff", "all")
    ]
    hub = hub_with(*nodes)
    traits: Any = {"modify_pod_hook": to_staff, "memory_choices": ["2Gi", "1Gi"]}
    await start(made(hub, "ann", **traits), **A100S, memory="2Gi")
    hub.view.put("Pod", pod("x", 1, on="staff"))
    accelerators = made(hub, "ann", **traits).gpuspawner_gates.sources.accelerators

    found, _ = await preview(accelerators, {**A100S, "memory": "2Gi"}, "")

    assert isinstance(found, Refuse)
    assert all(Difference.LESS_MEMORY not in it.differences for it in found.alternatives)


def by_server(spawner: Any) -> None:
    if spawner.name == "big":
        spawner.tolerations = [TOLERATION]


@EACH_SOURCE
async def test_a_hook_may_look_at_which_of_a_user_s_servers_it_is(hub_with, offers, chosen) -> None:
    hub = hub_with(TAINTED, ("Node", labelled(node("b", 1), {"gpu": "a100"})))
    traits: Any = {"pre_spawn_hook": by_server, **offers}
    await start(made(hub, "ann", **traits), **chosen)
    hub.view.put("Pod", pod("x", 1, on="b"))
    other = made(hub, "ann", **traits)
    other.orm_spawner = orm.Spawner(name="big")

    await start(other.gpuspawner_copy(), **chosen)


async def test_a_page_says_of_another_server_only_what_is_known_of_that_one(hub_with) -> None:
    hub = hub_with(TAINTED, ("Node", labelled(node("b", 1), {"gpu": "a100"})))
    traits: Any = {"pre_spawn_hook": by_server, "profile_list": [ONE]}
    await start(made(hub, "ann", **traits), profile="gpu")
    hub.view.put("Pod", pod("x", 1, on="b"))
    profiles = made(hub, "ann", **traits).gpuspawner_gates.sources.current

    found = [(await profiles.of(it).states())[0]["state"] for it in ("", "big")]

    assert found == ["busy", "unknown"]


async def test_a_form_says_of_another_server_only_what_is_known_of_that_one(hub_with) -> None:
    hub = hub_with(TAINTED, ("Node", labelled(node("b", 1), {"gpu": "a100"})))
    await start(made(hub, "ann", pre_spawn_hook=by_server))
    hub.view.put("Pod", pod("x", 1, on="b"))
    accelerators = made(hub, "ann", pre_spawn_hook=by_server).gpuspawner_gates.sources.accelerators

    found = [(await preview(accelerators, {"accelerator": "a100"}, it))[0] for it in ("", "big")]

    assert [type(it) for it in found] == [Refuse, Start]


async def test_a_page_says_of_another_choice_only_what_is_known_of_that_one(hub_with) -> None:
    hub = hub_with(TAINTED, ("Node", labelled(node("b", 1), {"gpu": "a100"})))
    await start(made(hub, "ann", **OF_COURSES), profile="gpu")
    hub.view.put("Pod", pod("x", 1, on="b"))

    [row] = await made(hub, "ann", **OF_COURSES).gpuspawner_gates.sources.current.states()

    assert row["state"] == "busy"
    assert [it["state"] for it in row["choices"]] == ["busy", "unknown"]


def harmless(_: Any, pod: Any) -> Any:
    """Every pod may run on spot machines."""
    spot = V1Toleration(key="spot", operator="Exists")
    pod.spec.tolerations = [*(pod.spec.tolerations or ()), spot]
    return pod


def with_priority(spawner: Any) -> None:
    spawner.priority_class_name = "teachers" if spawner.user.name == "bob" else ""


TEACHERS = ("PriorityClass", {"metadata": {"name": "teachers"}, "value": 1000})


@EACH_SOURCE
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


@EACH_SOURCE
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


def gives_a_gpu(_: object, pod: Any) -> Any:
    pod.spec.containers[0].resources.limits = {"nvidia.com/gpu": "1"}
    return pod


@pytest.mark.parametrize(("hook", "value"), [(gives_a_gpu, None), (None, "void")])
async def test_a_gpu_that_a_hook_gives_is_not_hidden_from_its_server(hook, value, hub_with) -> None:
    spawner = hub_with(("Node", node("a", 2))).spawner(autoscaling="none", modify_pod_hook=hook)

    pod = await start(spawner, accelerator=None)

    [server] = pod.spec.containers
    variables = {it.name: it.value for it in server.env}
    assert variables.get("NVIDIA_VISIBLE_DEVICES") == value


async def test_what_groups_get_is_not_lost_by_what_was_seen_of_others(hub_with) -> None:
    hub = hub_with(TAINTED)
    traits: Any = {"modify_pod_hook": harmless, "group_overrides": GROUPS}
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
