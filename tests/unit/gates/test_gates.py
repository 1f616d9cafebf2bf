"""The gates of one spawner; tests/hub/gates/test_gates.py tests them in a hub."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextvars import copy_context
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from jupyterhub.auth import DummyAuthenticator, PAMAuthenticator
from jupyterhub.objects import Server
from jupyterhub.utils import maybe_future
from kubespawner import KubeSpawner
from kubespawner.spawner import EventReflector

from gpuspawner.gates.form_gate import AlreadyStartedError
from gpuspawner.kube.objects import Manifest
from gpuspawner.launch.observed_pod import NEVER_SEEN_SECONDS
from gpuspawner.preflight.decision import Start, Wait
from gpuspawner.scaling.usual_times import longest_wait
from gpuspawner.spawner import in_front_of
from gpuspawner.start import hooks
from gpuspawner.start.attempt import CLEANUP_SECONDS
from gpuspawner.start.refusal import Refusal
from tests.unit.makers.courses import Course, begin, sends
from tests.unit.makers.hubs import A100, TAINT, StillHub, tolerating
from tests.unit.makers.profile_lists import GPU
from tests.unit.makers.worlds import node, pod, settle

TAINTED = ("Node", node("a", 2, taints=[TAINT]))
TWO = ("Node", node("a", 2))
TWO_GPUS = {"accelerator": "a100", "gpus": 2, "image": None, "memory": None, "cpu": None}


class RunsTheImageThatIsSent(KubeSpawner):
    """Reads its own options, as the spawner of BinderHub does."""

    def start(self) -> Any:
        self.image = self.user_options["image"]
        return super().start()


SENT = {"image": "registry.example.org/built:1", "token": "secret", "repo_url": "https://git/x"}


async def test_a_class_with_options_of_its_own_gets_them_on_nodes_with_gpus(hub_with) -> None:
    spawner = hub_with(TWO).spawner(in_front_of(RunsTheImageThatIsSent))
    spawner.user_options = SENT

    spawner.run_pre_spawn_hook()

    assert not await spawner.get_options_form()
    assert spawner.user_options == SENT


async def test_options_of_a_class_are_passed_on_beside_configured_accelerators(hub_with) -> None:
    own = in_front_of(RunsTheImageThatIsSent)
    spawner = hub_with(TWO).spawner(own, accelerators={"a100": A100})

    await begin(spawner, accelerator="a100", token="secret")

    assert spawner.user_options["token"] == "secret"


GPU_FOR_ALL = {"extra_resource_limits": {"nvidia.com/gpu": "1"}, "autoscaling": "none"}


async def test_every_server_keeps_the_gpu_that_the_hub_gives_to_all(hub_with) -> None:
    spawner = hub_with(TWO).spawner(**GPU_FOR_ALL)

    assert not await spawner.get_options_form()
    spawner.run_pre_spawn_hook()
    pod = await spawner.get_pod_manifest()

    [container] = pod.spec.containers
    assert container.resources.limits["nvidia.com/gpu"] == "1"
    assert "NVIDIA_VISIBLE_DEVICES" not in {it.name for it in container.env}


ONE_GPU = {"nvidia.com/gpu": "1"}


class GivesGPUs(KubeSpawner):
    async def get_pod_manifest(self) -> Any:
        pod = await super().get_pod_manifest()
        pod.spec.containers[0].resources.limits |= ONE_GPU
        pod.spec.containers[0].resources.requests |= ONE_GPU
        return pod


def give_gpu(spawner: Any) -> None:
    spawner.extra_resource_limits = ONE_GPU


IN_LAB = {"groups": ["lab"], "spawner_override": {"extra_resource_limits": ONE_GPU}}
GIVING: dict[str, tuple[type[KubeSpawner], dict[str, Any]]] = {
    "a group's overrides": (KubeSpawner, {"group_overrides": {"lab": IN_LAB}}),
    "a hook": (KubeSpawner, {"pre_spawn_hook": give_gpu}),
    "a class": (GivesGPUs, {}),
}


@pytest.mark.parametrize(("own", "traits"), GIVING.values(), ids=GIVING)
async def test_a_server_keeps_the_gpu_that_the_administrator_gives_its_owner(
    own, traits, hub_with
) -> None:
    """The owner has chosen none of those that the hub has discovered."""
    spawner = hub_with(TWO).spawner(in_front_of(own), autoscaling="none", **traits)
    spawner.user.groups = [SimpleNamespace(name="lab")]

    await spawner.apply_group_overrides()
    await maybe_future(spawner.run_pre_spawn_hook())
    pod = await spawner.get_pod_manifest()

    [container] = pod.spec.containers
    assert container.resources.limits["nvidia.com/gpu"] == "1"
    assert "NVIDIA_VISIBLE_DEVICES" not in {it.name for it in container.env}


SHOWN = {"environment": {"NVIDIA_VISIBLE_DEVICES": "all"}}
A_GROUP_SEES = {"lab": {"groups": ["lab"], "spawner_override": SHOWN}}
NEVER_VOID = {"cpu_environment": {"NVIDIA_VISIBLE_DEVICES": "none"}}


def show_gpus(spawner: Any) -> None:
    spawner.environment = SHOWN["environment"]


@pytest.mark.parametrize(
    ("traits", "seen"),
    [
        (SHOWN, "all"),
        ({"group_overrides": A_GROUP_SEES}, "all"),
        ({"pre_spawn_hook": show_gpus}, "all"),
        ({**SHOWN, "preflight": "off"}, "all"),
        ({}, "void"),
        (NEVER_VOID, "none"),
        ({**SHOWN, **NEVER_VOID}, "none"),
        ({**SHOWN, "cpu_environment": {"NVIDIA_VISIBLE_DEVICES": "void"}}, "void"),
        ({**SHOWN, "accelerators": {"a100": A100}}, "void"),
    ],
)
@pytest.mark.parametrize("gpus", [0, 2])
async def test_a_hub_that_only_discovers_gpus_hides_none_that_its_environment_shows(
    gpus, traits, seen, hub_with
) -> None:
    """Without a device plugin, that variable alone is how servers share a machine's GPUs."""
    spawner = hub_with(("Node", node("a", gpus))).spawner(autoscaling="none", **traits)
    spawner.user.groups = [SimpleNamespace(name="lab")]
    spawner.user_options = {"gpus": 0}

    await spawner.apply_group_overrides()
    await maybe_future(spawner.run_pre_spawn_hook())
    pod = await spawner.get_pod_manifest()

    [container] = pod.spec.containers
    assert {it.name: it.value for it in container.env}["NVIDIA_VISIBLE_DEVICES"] == seen


@pytest.mark.parametrize("is_null", [True, False], ids=["as null", "left out"])
@pytest.mark.parametrize("offers", [{}, {"profile_list": [{"display_name": "A"}]}])
async def test_an_override_that_a_group_lacks_is_no_mistake_for_others(
    offers, is_null, hub_with
) -> None:
    of_others = {"groups": ["others"], **({"spawner_override": None} if is_null else {})}
    spawner = hub_with(TWO).spawner(group_overrides={"x": of_others}, **offers)
    spawner.user.groups = [SimpleNamespace(name="lab")]

    await spawner.get_options_form()
    await maybe_future(spawner.run_pre_spawn_hook())


async def test_a_class_of_others_may_delete_another_pod_than_the_server_s(hub_with) -> None:
    asked = []

    class HasDatabase(KubeSpawner):
        async def _make_delete_pod_request(self, *what: Any) -> bool:
            asked.append(what)
            return True

    spawner: Any = hub_with(TWO).spawner(in_front_of(HasDatabase))

    assert await spawner._make_delete_pod_request("database", None, 1, 3)
    assert asked == [("database", None, 1, 3)]


async def test_a_server_of_a_hub_that_gives_all_a_gpu_is_refused_if_all_are_in_use(
    hub_with,
) -> None:
    spawner = hub_with(TWO, ("Pod", pod("x", 2, on="a"))).spawner(**GPU_FOR_ALL)

    with pytest.raises(Refusal, match="in use"):
        await spawner.run_pre_spawn_hook()


class Quick(EventReflector):
    """A reflector whose first list is read at once."""

    def __init__(self, **_: object) -> None:
        self.first_load_future = asyncio.get_running_loop().create_future()
        self.first_load_future.set_result(None)

    async def start(self) -> None: ...


def logging_events(spawner: Any) -> None:
    spawner.log.info("%s", spawner.events)


class Logs:
    """A hook that is an object, and one that is a method."""

    def __call__(self, spawner: Any, _pod: Any) -> None:
        self._log(spawner)

    def _log(self, spawner: Any) -> None:
        logging_events(spawner)


class LogsInAClassMethod(KubeSpawner):
    """Reads the events in a method of the class."""

    @classmethod
    def log_events(cls, spawner: Any) -> None:
        spawner.log.info("%s", spawner.events)


labtools: Any = ModuleType("labtools")
exec("def report(spawner): spawner.log.info('%s', spawner.events)", vars(labtools))
report = labtools.report


def reporting_by_module(spawner: Any, *_: Any) -> None:
    labtools.report(spawner)


def reporting(spawner: Any, *_: Any) -> None:
    report(spawner)


def importing(spawner: Any, *_: Any) -> None:
    from labtools import report as imported  # type: ignore[import-not-found]

    imported(spawner)


class Reports:
    """Has a hook that is a method."""

    def __call__(self, spawner: Any, *_: Any) -> None:
        labtools.report(spawner)


def logs_its_name(spawner: Any, *_: Any) -> None:
    logging.getLogger("labs").info("%s", spawner.user.name)
    logs_nothing(spawner)


def logs_nothing(_: Any) -> None: ...


class TellsEvents(KubeSpawner):
    """Tells how far a start is by its pod's events alone."""

    async def progress(self) -> Any:
        for event in self.events:
            yield event


EVENTS = [("events", "default")]


@pytest.mark.parametrize(
    ("own", "settings", "started"),
    [
        (KubeSpawner, {}, []),
        (KubeSpawner, {"after_pod_created_hook": logging_events}, EVENTS),
        (KubeSpawner, {"after_pod_created_hook": Logs()}, EVENTS),
        (KubeSpawner, {"after_pod_created_hook": Logs().__call__}, EVENTS),
        (LogsInAClassMethod, {}, EVENTS),
        (TellsEvents, {}, EVENTS),
        (KubeSpawner, {"post_stop_hook": reporting_by_module}, EVENTS),
        (KubeSpawner, {"post_stop_hook": reporting}, EVENTS),
        (KubeSpawner, {"post_stop_hook": importing}, EVENTS),
        (KubeSpawner, {"post_stop_hook": Reports().__call__}, EVENTS),
        (KubeSpawner, {"post_stop_hook": Reports()}, EVENTS),
        (KubeSpawner, {"post_stop_hook": logs_its_name}, []),
        (KubeSpawner, {"options_form": "<b>", "environment": {"A": logs_its_name}}, []),
    ],
)
async def test_kubespawner_follows_events_only_for_somebody_who_reads_them(
    hub_with, monkeypatch, own, settings, started
) -> None:
    monkeypatch.setattr(KubeSpawner, "reflectors", {})
    spawner = hub_with(TWO).spawner(in_front_of(own), accelerators={"a100": A100}, **settings)
    spawner.run_pre_spawn_hook()

    await spawner._start_reflector("events", Quick)

    assert list(spawner.reflectors) == started


@pytest.mark.parametrize("kind", [DummyAuthenticator, PAMAuthenticator])
async def test_no_authenticator_of_jupyterhub_s_reads_events(hub_with, kind) -> None:
    spawner = hub_with(TWO).spawner()
    spawner.authenticator = kind()

    assert not hooks.reads_events(spawner)


async def test_kubespawner_tells_the_events_of_a_start_that_skips_our_gates(
    hub_with, monkeypatch
) -> None:
    monkeypatch.setattr(KubeSpawner, "reflectors", {})
    spawner = hub_with(TWO).spawner()

    await spawner._start_reflector("events", Quick)

    assert list(spawner.reflectors) == EVENTS


async def test_each_gate_asks_admission_in_the_pod_s_namespace(hub_with) -> None:
    hub = hub_with(TAINTED)
    hub.admission.answer = tolerating
    spawner = hub.spawner(accelerators={"a100": A100}, namespace="research")
    sent: list[Any] = []

    async def create_namespaced_pod(namespace: str, pod: Any) -> None:
        sent.append((namespace, pod))

    spawner.api.create_namespaced_pod = create_namespaced_pod

    # JupyterHub 5 passes a query as sent, 6 without the prefix.
    stored = await spawner.options_from_query({"opt-accelerator": ["a100"], "opt-gpus": ["2"]})
    assert len(hub.admission.asked) == 1
    spawner.user_options = stored
    await spawner.run_pre_spawn_hook()
    assert len(hub.admission.asked) == 2
    pod = await spawner.get_pod_manifest()
    assert await spawner._make_create_pod_request(pod, 3)
    assert len(hub.admission.asked) == 3

    assert stored == spawner.user_options == TWO_GPUS
    assert sent == [("research", pod)]
    for namespace, asked in hub.admission.asked:
        [container] = asked["spec"]["containers"]
        assert namespace == "research"
        assert container["resources"]["limits"]["nvidia.com/gpu"] == "2"
    attempt = spawner.gpuspawner_gates.attempt
    assert attempt.decision == Start(attempt.choice.proposal.grant)
    assert attempt.is_sent


@pytest.mark.parametrize("is_room", [True, False], ids=["room", "no room"])
async def test_a_form_is_refused_if_another_request_starts_the_server_meanwhile(
    is_room, hub_with, caplog
) -> None:
    caplog.set_level(logging.INFO)
    hub = hub_with(TAINTED)
    spawner = hub.spawner(accelerators={"a100": A100})

    def meanwhile(pod: Manifest) -> Manifest:
        spawner._spawn_pending = True
        return tolerating(pod) if is_room else pod

    hub.admission.answer = meanwhile

    with pytest.raises(AlreadyStartedError):
        await spawner.run_options_from_form({"accelerator": ["a100"], "gpus--a100": ["2"]})
    assert caplog.messages == []


async def test_a_profile_that_cannot_be_loaded_at_the_start_is_not_a_500(hub_with) -> None:
    spawner = hub_with(TWO).spawner(profile_list=[GPU])
    assert spawner.run_pre_spawn_hook() is None
    spawner.user_options = {"profile": "taken away meanwhile"}

    with pytest.raises(Refusal, match="an error in the hub's configuration"):
        await spawner.load_user_options()


async def test_on_a_copy_a_profile_fails_to_load_as_with_kubespawner(hub_with) -> None:
    spawner = hub_with(TWO).spawner(profile_list=[GPU])
    assert spawner.run_pre_spawn_hook() is None

    copied = spawner.gpuspawner_copy()
    copied.user_options = {"profile": "taken away meanwhile"}

    with pytest.raises(ValueError, match="taken away meanwhile"):
        await copied.load_user_options()


def named(spawner: Any, **spec: Any) -> dict[str, Any]:
    """Return a server's pod as the API server shows it."""
    name = {"name": spawner.pod_name, "namespace": spawner.namespace, "uid": "u"}
    return {**pod("a", **spec), "metadata": name}


@pytest.mark.usefixtures("clock")
async def test_a_wait_in_vain_is_a_warning_if_refusals_are_warnings(hub_with, caplog) -> None:
    hub = hub_with(("Node", node("a", 1, providerID="aws:///z/i-1")), ("Pod", pod("x", on="a")))
    spawner = hub.spawner(accelerators={"a100": A100}, preflight="warn")
    await begin(spawner, accelerator="a100")
    assert isinstance(spawner.gpuspawner_gates.attempt.decision, Wait)
    hub.view.put("Pod", named(spawner))

    run = spawner.gpuspawner_gates._run
    run.sent.set()
    run.created.set()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(run.until_failed(), 1000)

    assert caplog.text.count("Starting alice anyway") == 1
    assert "no-answer" in caplog.text


ELSEWHERE = {"gpu": "a100", "pool": "research"}


def sends_elsewhere(hub: StillHub, then: Callable[..., Any], **traits: Any) -> Any:
    """Make a start whose pod is sent to another pool; *then* is called, and it waits for ever.

    Admission changes the pod so, but isn't asked about a yes before the start.
    """
    spawner: Any = hub.spawner(accelerators={"a100": A100}, autoscaling="always", **traits)
    spawner.user_options = {"accelerator": "a100"}
    assert spawner.run_pre_spawn_hook() is None
    assert spawner.gpuspawner_gates.attempt.decision == Start(
        spawner.gpuspawner_gates.attempt.choice.proposal.grant
    )
    hub.admission.answer = lambda pod: {**pod, "spec": {**pod["spec"], "nodeSelector": ELSEWHERE}}

    async def forever() -> None:
        then(spawner)
        await asyncio.Event().wait()

    sends(spawner, forever)
    spawner.gpuspawner_stock.stops_pod = lambda: True
    return spawner


@pytest.mark.usefixtures("clock")
async def test_a_wait_that_only_the_last_gate_knows_of_ends_in_a_refusal(hub_with) -> None:
    hub = hub_with(("Node", node("a", 1)))

    def show(spawner: Any) -> None:
        hub.view.put("Pod", named(spawner, nodeSelector=ELSEWHERE))

    spawner = sends_elsewhere(hub, show)

    with pytest.raises(Refusal, match="The cluster didn't add a machine"):
        await asyncio.wait_for(spawner.gpuspawner_gates.run_start(), 3600)


@pytest.mark.usefixtures("clock")
async def test_a_wait_that_the_hub_has_set_no_time_for_ends_before_the_hub_s_timeout(
    hub_with,
) -> None:
    """The pod isn't in view yet when the start ends."""

    def end_soon(spawner: Any) -> None:
        attempt = spawner.gpuspawner_gates.attempt
        before = spawner.scheduling_timeout + 600 + spawner.http_timeout
        assert attempt.seconds_left == pytest.approx(before - CLEANUP_SECONDS)
        assert attempt.seconds_left < longest_wait(attempt.decision.scale_up)
        spawner.gpuspawner_gates.attempt = attempt.ending_in(0)

    hub = hub_with(("Node", node("a", 1)))
    spawner = sends_elsewhere(hub, end_soon, start_timeout=300)

    with pytest.raises(Refusal, match="No machine can take your server right now"):
        await asyncio.wait_for(spawner.start(), 3600)


async def test_the_hub_waits_as_long_as_the_profile_says_and_for_a_node_too(hub_with) -> None:
    """KubeSpawner loads the profile only after the hub has read the timeout."""
    slow = {**GPU["kubespawner_override"], "start_timeout": 600}
    grows = {**GPU, "kubespawner_override": slow, "scale_up": {"max_nodes": 1, "minutes": 8}}
    spawner = hub_with().spawner(profile_list=[grows], start_timeout=300)
    await begin(spawner, profile="gpu")
    longer = spawner.gpuspawner_gates.attempt.seconds_for_a_node
    read: list[int] = []

    async def run_start() -> None:
        await spawner.load_user_options()
        read.append(spawner.start_timeout)

    spawner.gpuspawner_stock.run_start = run_start
    started = spawner.start()
    read.append(spawner.start_timeout)
    await started

    assert longer > 0
    others = 600 + spawner.http_timeout
    assert read == [600 + longer + others, 600 + longer + others]
    assert spawner.start_timeout == 300


def started(spawner: Any) -> Awaitable[object]:
    """Start a server whose pod KubeSpawner doesn't make."""

    async def run_start() -> None: ...

    spawner.gpuspawner_stock.run_start = run_start
    run: Awaitable[object] = spawner.start()
    return run


async def test_the_hub_waits_for_all_phases_as_long_as_the_profile_says(hub_with) -> None:
    """Its image is large, and its program starts slowly."""
    limits = {"scheduling_timeout": 120, "preparing_timeout": 1800, "http_timeout": 90}
    slow = {**GPU, "kubespawner_override": {**GPU["kubespawner_override"], **limits}}
    hub = hub_with(("Node", node("a", 1)))
    spawner = hub.spawner(profile_list=[slow], start_timeout=300)
    await begin(spawner, profile="gpu")

    start = started(spawner)

    assert spawner.start_timeout == 300 + sum(limits.values())
    await start


@pytest.mark.parametrize("preflight", ["off", "warn"])
async def test_a_profile_may_start_its_servers_unchecked(hub_with, preflight: str) -> None:
    unchecked = {**GPU["kubespawner_override"], "preflight": preflight}
    profiles = [GPU, {**GPU, "slug": "other", "kubespawner_override": unchecked}]
    spawner = hub_with().spawner(profile_list=profiles, autoscaling="none")

    with pytest.raises(Refusal):
        await spawner.run_options_from_form({"profile": ["gpu"]})
    await begin(spawner, **await spawner.run_options_from_form({"profile": ["other"]}))
    assert spawner.gpuspawner_gates.attempt is not None


def waits_longer(spawner: Any) -> None:
    spawner.start_timeout = 1800


class WaitsLonger(KubeSpawner):
    """Sets the timeout when it starts, for a user with a large home directory for example."""

    def start(self) -> Any:
        waits_longer(self)
        return super().start()


@pytest.mark.parametrize(
    ("traits", "afterwards"),
    [
        ({"profile_list": [GPU], "pre_spawn_hook": waits_longer}, 1800),
        ({"of": in_front_of(WaitsLonger)}, 300),
    ],
    ids=["a hook, if the profile sets none", "a class in its start"],
)
async def test_the_timeout_counts_that_code_of_the_hub_sets(hub_with, traits, afterwards) -> None:
    spawner = hub_with(TWO).spawner(start_timeout=300, preflight="off", **traits)
    await maybe_future(spawner.run_pre_spawn_hook())

    start = started(spawner)

    assert spawner.gpuspawner_gates.attempt.starting == 1800
    assert spawner.start_timeout > 1800
    await start
    assert spawner.start_timeout == afterwards


class PlainTimeout(KubeSpawner):
    start_timeout = 600


class FixedTimeout(KubeSpawner):
    start_timeout = property(lambda _: 600)


@pytest.mark.parametrize(("kind", "waits"), [(PlainTimeout, 3 * 600 + 30), (FixedTimeout, 600)])
async def test_a_class_may_give_the_timeout_s_name_to_a_value_or_a_property(
    hub_with, kind, waits
) -> None:
    spawner = hub_with(TWO).spawner(in_front_of(kind), preflight="off")
    spawner.run_pre_spawn_hook()

    start = started(spawner)

    assert spawner.start_timeout == waits
    await start
    assert spawner.start_timeout == 600


def renamed(spawner: Any) -> None:
    """A hook that gives a pod a name and a namespace of its own."""
    spawner.pod_name, spawner.namespace = "lab-of-alice", "labs"


@pytest.mark.usefixtures("clock")
async def test_the_pod_that_is_sent_is_followed_by_the_name_that_a_hook_has_given_it(
    hub_with,
) -> None:
    hub = hub_with(("Node", node("a", 2)))
    spawner: Any = hub.spawner(accelerators={"a100": A100}, pre_spawn_hook=renamed)
    await begin(spawner, accelerator="a100")
    reservations = hub.runtime(spawner).preflight.reservations
    running = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]}
    promised: list[int] = []
    heard: list[str] = []

    async def starts_slowly() -> None:
        promised.append(len(reservations))
        hub.view.put("Pod", named(spawner, nodeName="a"))
        promised.append(len(reservations))
        await asyncio.sleep(NEVER_SEEN_SECONDS + 15)
        heard.extend(hub.view.events._heard["labs"])

    sends(spawner, starts_slowly)
    spawner.gpuspawner_stock.known_pod = lambda: {**named(spawner, nodeName="a"), "status": running}

    await asyncio.wait_for(spawner.gpuspawner_gates.run_start(), 3600)

    assert promised == [1, 0]
    assert heard == ["lab-of-alice"]


async def test_a_refused_start_of_a_renamed_pod_leaves_no_reservation(hub_with) -> None:
    hub = hub_with(("Node", node("a", 1)))
    spawner: Any = hub.spawner(
        accelerators={"a100": A100}, pre_spawn_hook=renamed, autoscaling="none"
    )
    await begin(spawner, accelerator="a100")
    sends(spawner, limits={"nvidia.com/gpu": "2"})

    with pytest.raises(Refusal):
        await spawner.gpuspawner_gates.run_start()

    assert len(hub.runtime(spawner).preflight.reservations) == 0


async def deleted(spawner: Any) -> None:
    """Delete the pod as KubeSpawner does."""
    await spawner._make_delete_pod_request(spawner.pod_name, None, 0, 3)


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (RuntimeError("Your course has ended."), ""),
        (TimeoutError("Failed to delete service jupyter-alice"), "because of an error"),
    ],
    ids=["an error", "a time-out"],
)
async def test_a_start_that_deletes_its_own_pod_ends_with_its_own_error(
    hub_with, error, told
) -> None:
    """As KubeSpawner does if a step between the pod's creation and its readiness fails."""
    spawner = sends_and_deletes(hub_with, deleted, error)

    with pytest.raises(type(error), match=str(error)) as raised:
        await asyncio.wait_for(spawner.gpuspawner_gates.run_start(), 3600)
    assert told in vars(raised.value).get("jupyterhub_message", "")


@pytest.mark.usefixtures("clock")
async def test_a_start_whose_pod_somebody_else_deletes_ends_at_once(hub_with) -> None:
    context = copy_context()  # as in another request

    async def delete(spawner: Any) -> None:
        await asyncio.create_task(deleted(spawner), context=context)

    spawner = sends_and_deletes(hub_with, delete, RuntimeError())
    with pytest.raises(Refusal, match="Your server was deleted"):
        await asyncio.wait_for(spawner.gpuspawner_gates.run_start(), 3600)


def sends_and_deletes(
    hub_with: Callable[..., StillHub],
    delete: Callable[[Any], Awaitable[object]],
    error: Exception,
) -> Any:
    """Make a start whose pod is deleted; a minute later, it fails."""
    spawner: Any = hub_with(("Node", node("a", 1))).spawner(accelerators={"a100": A100})
    spawner.user_options = {"accelerator": "a100"}
    assert spawner.run_pre_spawn_hook() is None
    shown = [{**named(spawner), "status": {"phase": "Pending"}}]

    async def fail() -> None:
        await asyncio.sleep(2)  # it is followed
        await delete(spawner)
        shown.clear()
        await asyncio.sleep(60)
        raise error

    sends(spawner, fail)
    spawner.gpuspawner_stock.known_pod = lambda: shown[0] if shown else None
    spawner.gpuspawner_stock.knows_pods = lambda: True
    return spawner


async def test_a_home_directory_that_a_hook_has_renamed_may_not_be_in_view_yet(hub_with) -> None:
    def renames(spawner: Any) -> None:
        spawner.pvc_name = "homes-of-the-course"

    hub = hub_with(("Node", node("a", 1)), ("StorageClass", STANDARD))
    spawner: Any = hub.spawner(
        accelerators={"a100": A100},
        pre_spawn_hook=renames,
        storage_pvc_ensure=True,
        storage_class="standard",
        storage_capacity="10Gi",
        volumes=[{"name": "home", "persistentVolumeClaim": {"claimName": "{pvc_name}"}}],
    )
    await begin(spawner, accelerator="a100")
    sent = sends(spawner)

    await spawner.gpuspawner_gates.run_start()

    [volume] = sent[0].spec.volumes
    assert volume.persistent_volume_claim["claimName"] == "homes-of-the-course"
    assert "not found" not in str(spawner.gpuspawner_gates.attempt.decision)


STANDARD = {
    "metadata": {"name": "standard"},
    "provisioner": "example.com/disks",
    "volumeBindingMode": "WaitForFirstConsumer",
}


@pytest.mark.parametrize(
    ("own", "kept"),
    [({}, "false"), ({"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}, "true")],
)
async def test_one_trait_keeps_every_autoscaler_from_ending_a_server(hub_with, own, kept) -> None:
    hub = hub_with(TWO)

    pod = await hub.spawner(do_not_disrupt=True, extra_annotations=own).get_pod_manifest()
    without = await hub.spawner(extra_annotations=own).get_pod_manifest()

    assert pod.metadata.annotations["karpenter.sh/do-not-disrupt"] == "true"
    assert pod.metadata.annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] == kept
    assert "karpenter.sh/do-not-disrupt" not in without.metadata.annotations


@pytest.mark.each_python
@pytest.mark.parametrize("taints", [[], [TAINT]], ids=["admitted at once", "after a dry run"])
@pytest.mark.parametrize("hook", [lambda _: asyncio.sleep(3600), lambda _: Future()])
async def test_a_start_that_is_cancelled_in_a_hook_leaves_no_server_and_no_charge(
    hub_with, hook, taints
) -> None:
    """The hub clears nothing if the hook's own clean-up takes more than a second."""
    course = Course(hub_with(("Node", node("a", 2, taints=taints))))
    course.hub.admission.answer = tolerating
    spawner = course.spawner({"course": {"gpus_per_user": 1}}, pre_spawn_hook=hook)
    spawner.orm_spawner = course.database.server(course.row, runs=False)
    spawner.server = Server()
    spawner.user_options = {"accelerator": "t4"}
    start = asyncio.ensure_future(spawner.run_pre_spawn_hook())
    await settle()
    reservations = course.of(spawner).preflight.reservations
    assert (course.counted(spawner), len(reservations)) == (1, 1)

    start.cancel()
    await asyncio.wait({start})

    assert (course.counted(spawner), len(reservations)) == (0, 0)
    assert spawner.server is None
