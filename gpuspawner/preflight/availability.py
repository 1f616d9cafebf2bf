"""The current availability of each accelerator, for the form and the API.

It is the scheduler's verdict on the smallest server with it: a node with free GPUs may have no free
memory.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from gpuspawner.cluster.health import Health, Live, Reading
from gpuspawner.kube.caches import UntilChanged
from gpuspawner.kube.objects import Manifest, convert
from gpuspawner.kube.pods import Pod
from gpuspawner.kube.quantity import QuantityError
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.manifest import ManifestError, PodRules, apply
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.types import Accelerator
from gpuspawner.preflight.counts import NodeCounts, could_be_raised
from gpuspawner.preflight.decision import ResourceRoom
from gpuspawner.preflight.downloads import containers, is_settled, on_all
from gpuspawner.preflight.learned_hooks import Later, MadeFor, Placements, anywhere, kind_of
from gpuspawner.scaling.nodes_to_come import NodesToCome
from gpuspawner.scaling.outlook import CanScaleUp, MayScaleUp, Obstacle
from gpuspawner.scaling.pools import DeclaredPool
from gpuspawner.scheduling import ClusterState, Outcome, Rules, evaluate
from gpuspawner.scheduling.evaluate import fits_somewhere, fitting_nodes
from gpuspawner.scheduling.requests import pod_requests
from gpuspawner.scheduling.verdicts import Subject

_RUNTIME_ONLY = ("args", "command", "env", "lifecycle", "securityContext")
"""Fields of a container that don't affect scheduling."""

_MOST_KEPT = 256

NOBODY = ("", "")
"""The key of a trial pod, which has no reservation."""


class State(StrEnum):
    """The availability of an accelerator, or of servers without one."""

    FREE = "free"
    """The smallest server would start now."""
    BUSY = "busy"
    """It would start once other servers end."""
    CAN_SCALE_UP = "can-scale-up"
    """It would start on a new node that can be added."""
    MAY_SCALE_UP = "may-scale-up"
    """No present node has room, but one may be added; the hub tries it."""
    AWAY = "away"
    """Its nodes are cordoned or not ready, or their GPUs are unhealthy."""
    ABSENT = "absent"
    """No existing node can ever hold it."""
    LIMITED = "limited"
    """A limit is reached; it may start once servers that count toward it end."""
    WITHHELD = "withheld"
    """A policy denies it, whatever is in use."""
    READING = "reading"
    """The hub is still reading the cluster."""
    UNKNOWN = "unknown"
    """The availability is unknown."""


class DeniedByPolicy(Protocol):
    """What a policy denies: `gpuspawner.policies.limits` has the counts."""

    @property
    def is_shown(self) -> bool:
        """Whether the policy's administrator shows nevertheless what it withholds."""


class Availability(msgspec.Struct, frozen=True):
    """The availability of one accelerator, or of servers without one (None).

    Attributes:
        gpus: GPU counts of the nodes on which the smallest server could run; its `asked` is the
            smallest count. None without an accelerator, or if the state is unknown.
        scale_up: The nodes that can or may be added; only in the states named so.
        obstacles: Why no node can be added, if servers wait for others to end.
        short_of: The resource that no node has enough of, if servers wait for others to end.
        left: The most GPUs that limits leave to the user; None if they leave all that is on offer.
        denial: What a policy denies; only in the states `LIMITED` and `WITHHELD`.
        at_hand: Keys of the offered images that need no download wherever the server starts now.
        in_line: How many people wait in line for it.
        requests: What the pod of the smallest server requests before admission, by resource, in
            bytes, millicores or pieces; None if nobody can tell. If users can enter a size that is
            below KubeSpawner's own memory, that counts.
    """

    accelerator: Accelerator | None
    state: State
    gpus: ResourceRoom | None = None
    scale_up: CanScaleUp | MayScaleUp | None = None
    obstacles: tuple[Obstacle, ...] = ()
    short_of: str = ""
    left: int | None = None
    denial: DeniedByPolicy | None = None
    at_hand: frozenset[str] = frozenset()
    in_line: int = 0
    requests: tuple[tuple[str, int], ...] | None = None

    @property
    def is_hidden(self) -> bool:
        """Whether a policy withholds it, and its administrator doesn't show it nevertheless."""
        is_shown = self.denial is not None and self.denial.is_shown
        return self.state is State.WITHHELD and not is_shown


class Surveys:
    """Surveys that hold until the cluster changes.

    Attributes:
        kept: By the offers, and by the pod or what it has in common with others.
    """

    def __init__(self, state: ClusterState, to_come: NodesToCome, placements: Placements) -> None:
        self._state = state
        self._counts = NodeCounts(state)
        self._to_come = to_come
        self._placements = placements
        self.kept = UntilChanged[tuple[Availability, ...]](_MOST_KEPT)

    @property
    def version(self) -> object:
        """The version of what a survey depends on besides the offers and the pod."""
        images, placements = self._state.images.version, self._placements.version
        return self._state.version, self._to_come.version, images, placements

    def survey(
        self,
        health: Health,
        offers: Offers,
        pod: Mapping[str, Any] | None,
        rules: PodRules,
        later: Later,
    ) -> tuple[Availability, ...]:
        """Return the availability of each offered accelerator, and last of servers without one.

        `pod` is KubeSpawner's pod for the current user, so that the administrator's selectors and
        tolerations count. If it isn't known yet, every availability is unknown. Rules change only
        together with the state.
        """
        accelerators = (*offers.accelerators.values(), None)
        if pod is None or not isinstance(health, Live):
            word = State.READING if isinstance(health, Reading) else State.UNKNOWN
            return tuple(Availability(accelerator, word) for accelerator in accelerators)

        def look() -> tuple[Availability, ...]:
            trials = Trials(offers, pod, rules, later)
            return tuple(_look(self._counts, self._to_come, trials, it) for it in accelerators)

        key = msgspec.msgpack.encode(pod), offers, later
        return self.kept.of(self.version, key, look)


class Trials:
    """Makes trial pods, which nobody creates."""

    def __init__(
        self, offers: Offers, pod: Mapping[str, Any], rules: PodRules, later: Later
    ) -> None:
        self._offers = offers
        self._base = what_decides(pod)
        self.rules = rules
        self.later = later

    def smallest(self, accelerator: Accelerator | None) -> Grant:
        """Return the smallest choice with an accelerator."""
        choices = self._offers.choices(accelerator)
        return Grant(
            accelerator=accelerator,
            gpus=min(choices.counts),
            memory=choices.least_memory,
            cpu=min(choices.cpu, default=None),
        )

    def images(self, accelerator: Accelerator | None) -> dict[str, tuple[str, ...]]:
        """Return by key the offered images that the nodes decide, with those of other containers.

        If the kubelet asks the registry for a newer image, nobody knows whether it downloads one.
        """
        server, *others = containers(self._base)
        if not all(map(is_settled, others)):
            return {}
        beside = tuple(str(other["image"]) for other in others)
        return {
            it.key: (it.image, *beside)
            for it in self._offers.choices(accelerator).images
            if is_settled({**server, "image": it.image})
        }

    def pod(self, grant: Grant) -> Pod | None:
        """Return the pod for a grant as it will be admitted, as far as anybody can tell.

        None if the grant contradicts KubeSpawner's pod.
        """
        return self._admitted(grant, self.later.placements.admitted)

    def tolerant(self, grant: Grant) -> Pod | None:
        """As `pod`, but with the most tolerations that admission may add."""
        return self._admitted(grant, self.later.placements.tolerant)

    def _admitted(
        self, grant: Grant, admit: Callable[[MadeFor, Manifest], Manifest | None]
    ) -> Pod | None:
        granted, kind = self._granted(grant), kind_of(grant)
        if granted is None:
            return None
        admitted = admit(kind, self.later.expected(kind, granted))
        made = admitted and convert("Pod", admitted)
        return made if isinstance(made, Pod) else None

    def entered(self, smallest: Grant) -> Pod | None:
        """Return the pod with the smallest size that can be entered, if none is listed.

        Then the smallest choice is KubeSpawner's own memory, which may be more.
        """
        unlisted = self._offers.unlisted_memory
        if smallest.memory is not None or unlisted is None:
            return None
        return self.pod(replace(smallest, memory=unlisted.sizes[0].bytes))

    def is_open(self, grant: Grant) -> bool:
        """Whether nobody can tell what the hub's own code does with the pod for a grant."""
        granted = self._granted(grant)
        return granted is not None and self.later.is_open(kind_of(grant), granted, grant)

    def _granted(self, grant: Grant) -> Manifest | None:
        try:
            return apply(self._base, grant, self.rules)
        except ManifestError:
            return None


def _look(
    counts: NodeCounts, to_come: NodesToCome, trials: Trials, accelerator: Accelerator | None
) -> Availability:
    smallest = trials.smallest(accelerator)
    pod = trials.pod(smallest)
    if pod is None:
        return Availability(accelerator, State.UNKNOWN)
    found = _judged(counts, to_come, trials, smallest, pod)
    entered = trials.entered(smallest)
    pods = [pod] if entered is None else [pod, entered]
    return replace(found, requests=_least(pods, counts.state.rules))


def _least(pods: Sequence[Pod], rules: Rules) -> tuple[tuple[str, int], ...] | None:
    """Return the least that one of these pods requests; None if nobody can tell."""
    try:
        found = [pod_requests(it, rules) for it in pods]
    except QuantityError:
        return None
    return tuple(sorted((name, min(it.get(name, 0) for it in found)) for name in found[0]))


def _judged(
    counts: NodeCounts, to_come: NodesToCome, trials: Trials, smallest: Grant, pod: Pod
) -> Availability:
    state, accelerator = counts.state, smallest.accelerator
    gpus = counts.gpus(counts.candidates(pod), smallest) if accelerator else None
    if fits_somewhere(state, pod):
        fitting = partial(fitting_nodes, state, pod)
        at_hand = on_all(state.images, trials.images(accelerator), fitting)
        return Availability(accelerator, State.FREE, gpus, at_hand=at_hand)
    verdict = evaluate(state, pod)
    match verdict.outcome:
        case Outcome.FITS | Outcome.FITS_AFTER_PREEMPTION:
            return Availability(accelerator, State.FREE, gpus)
        case Outcome.UNKNOWN:
            return Availability(accelerator, State.UNKNOWN)
    rises = trials.later.sets_priority and could_be_raised(state, pod)
    is_open = trials.is_open(smallest)
    if is_open and (rises or evaluate(state, anywhere(pod)).outcome is not Outcome.BUSY):
        return Availability(accelerator, State.UNKNOWN)
    outlook = to_come.outlook(NOBODY, Subject(pod), DeclaredPool.of(accelerator))
    match outlook:
        case CanScaleUp():
            return Availability(accelerator, State.CAN_SCALE_UP, gpus, outlook)
        case MayScaleUp():
            return Availability(accelerator, State.MAY_SCALE_UP, gpus, outlook)
    if is_open and not verdict.busy:  # but it is, wherever its pod may go
        pod = anywhere(pod)
        gpus = counts.gpus(counts.candidates(pod), smallest) if accelerator else None
    if verdict.busy or is_open:
        short = counts.shortage(pod, counts.candidates(pod), smallest)
        short_of, obstacles = short.resource if short else "", outlook.obstacles
        return Availability(accelerator, State.BUSY, gpus, obstacles=obstacles, short_of=short_of)
    word = State.AWAY if verdict.away else _absent(state, trials, smallest)
    return Availability(accelerator, word, gpus, obstacles=outlook.obstacles)


def _absent(state: ClusterState, trials: Trials, grant: Grant) -> State:
    """Return what is known of a pod that no node can hold: admission may add a toleration.

    If each user has a namespace, it is asked only when somebody chooses the accelerator.
    """
    pod = trials.tolerant(grant)
    can_be = pod is not None and evaluate(state, pod).outcome is not Outcome.IMPOSSIBLE
    return State.UNKNOWN if can_be else State.ABSENT


def what_decides(pod: Mapping[str, Any]) -> dict[str, Any]:
    """Return a pod without the fields that no rule reads, and without claims that may not exist.

    What is left holds no tokens.
    """
    spec = pod["spec"]
    volumes = [
        {"name": volume["name"], "emptyDir": {}} if "persistentVolumeClaim" in volume else volume
        for volume in spec.get("volumes") or ()
    ]
    containers = [
        {key: value for key, value in container.items() if key not in _RUNTIME_ONLY}
        for container in spec["containers"]
    ]
    return {**pod, "spec": {**spec, "volumes": volumes, "containers": containers}}
