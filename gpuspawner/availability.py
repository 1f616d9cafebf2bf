"""How it stands with each accelerator right now, for the form and the API.

A state is what the scheduler would say to the smallest server with that accelerator; figures alone
could not tell, since GPUs may be free where no memory is left beside them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec

from gpuspawner.cluster.health import Health, Live, Reading
from gpuspawner.kube.objects import convert
from gpuspawner.kube.pods import Pod
from gpuspawner.manifest import ManifestError, PodRules, apply
from gpuspawner.offers import Accelerator, Offers
from gpuspawner.policy import Grant
from gpuspawner.preflight import facts
from gpuspawner.preflight.decision import Room
from gpuspawner.scaling.declared import CanScaleUp, can_scale_up
from gpuspawner.scheduling import ClusterState, Outcome, evaluate
from gpuspawner.scheduling.evaluate import fits_somewhere

ANY_POD: Mapping[str, Any] = {
    "metadata": {"name": "any", "namespace": "default"},
    "spec": {"containers": [{"name": "notebook", "image": "any"}]},
}
"""A pod that asks for nothing and may run anywhere."""


_RUNTIME_ONLY = ("args", "command", "env", "lifecycle", "securityContext")
"""What of a container matters only where it runs."""

_MOST_KEPT = 256


class State(StrEnum):
    """How it stands with an accelerator, or with servers without one."""

    FREE = "free"
    """The smallest server would start now."""
    BUSY = "busy"
    """It would start once others have ended."""
    CAN_SCALE_UP = "can-scale-up"
    """It would start on a node that can still come."""
    AWAY = "away"
    """Its nodes are cordoned, not ready, or their GPUs unhealthy."""
    ABSENT = "absent"
    """No node present could ever hold it."""
    READING = "reading"
    """The cluster is still being read."""
    UNKNOWN = "unknown"
    """It cannot be told."""


@dataclass(frozen=True, slots=True)
class Availability:
    """How it stands with one accelerator.

    Attributes:
        accelerator: Which one; None for servers without an accelerator.
        state: In a word.
        gpus: In figures, on the nodes where such a server could run, asked being the smallest
            count; None where there are none: without an accelerator, or where nothing is known.
        scale_up: The node that can still come; only where `state` says so.
    """

    accelerator: Accelerator | None
    state: State
    gpus: Room | None = None
    scale_up: CanScaleUp | None = None


def survey(
    state: ClusterState,
    health: Health,
    offers: Offers,
    pod: Mapping[str, Any] | None = ANY_POD,
    rules: PodRules = PodRules(),  # noqa: B008, it is frozen
) -> tuple[Availability, ...]:
    """Tell how it stands with every accelerator on offer, and at last with servers without one.

    Args:
        state: What is known of the cluster.
        health: How far that can be trusted.
        offers: What is offered.
        pod: KubeSpawner's pod for the person who looks, so that the administrator's selectors and
            tolerations count. Its claims are left out: they may not exist yet. None where the
            pod is not known yet, so that nothing can be told.
        rules: What holds for every pod.
    """
    accelerators = (*offers.accelerators.values(), None)
    if pod is None or not isinstance(health, Live):
        word = State.READING if isinstance(health, Reading) else State.UNKNOWN
        return tuple(Availability(accelerator, word) for accelerator in accelerators)
    trials = Trials(offers, pod, rules)
    return tuple(_look(state, trials, accelerator) for accelerator in accelerators)


class Surveys:
    """Surveys that were made, each kept for as long as nothing changes in the cluster.

    Args:
        state: What is known of the cluster.
    """

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._version = -1
        self._kept: dict[bytes, tuple[Availability, ...]] = {}

    def survey(
        self, health: Health, offers: Offers, pod: Mapping[str, Any] | None, rules: PodRules
    ) -> tuple[Availability, ...]:
        """Do as `survey` does; offers and rules only change with the state."""
        if pod is None or not isinstance(health, Live):
            return survey(self._state, health, offers, pod, rules)
        if self._version != self._state.version or len(self._kept) >= _MOST_KEPT:
            self._version = self._state.version
            self._kept.clear()
        key = msgspec.msgpack.encode(pod)
        if key not in self._kept:
            self._kept[key] = survey(self._state, health, offers, pod, rules)
        return self._kept[key]


class Trials:
    """Pods that nobody creates, to see what there would be room for.

    Args:
        offers: What is offered.
        pod: KubeSpawner's pod for the person who looks.
        rules: What holds for every pod.
    """

    def __init__(self, offers: Offers, pod: Mapping[str, Any], rules: PodRules) -> None:
        self._offers = offers
        self._base = _what_decides(pod)
        self.rules = rules

    def smallest(self, accelerator: Accelerator | None) -> Grant:
        """The least that a person can choose with this accelerator."""
        choices = self._offers.choices(accelerator)
        return Grant(
            accelerator=accelerator,
            gpus=min(choices.counts),
            memory=min((memory.bytes for memory in choices.memory), default=None),
            cpu=min(choices.cpu, default=None),
        )

    def pod(self, grant: Grant) -> Pod | None:
        """The pod that a grant makes; None for one that cannot be judged."""
        try:
            made = convert("Pod", apply(self._base, grant, self.rules))
        except ManifestError:
            return None
        return made if isinstance(made, Pod) else None


def _look(state: ClusterState, trials: Trials, accelerator: Accelerator | None) -> Availability:
    smallest = trials.smallest(accelerator)
    pod = trials.pod(smallest)
    if pod is None:
        return Availability(accelerator, State.UNKNOWN)
    nodes = facts.candidates(state, pod) if accelerator else []
    gpus = facts.gpus(nodes, accelerator, smallest.gpus)
    if fits_somewhere(state, pod):
        return Availability(accelerator, State.FREE, gpus)
    verdict = evaluate(state, pod)
    match verdict.outcome:
        case Outcome.FITS | Outcome.FITS_AFTER_PREEMPTION:
            return Availability(accelerator, State.FREE, gpus)
        case Outcome.UNKNOWN:
            return Availability(accelerator, State.UNKNOWN)
    scale_up = can_scale_up(state, accelerator, pod)
    if scale_up is not None:
        return Availability(accelerator, State.CAN_SCALE_UP, gpus, scale_up)
    if verdict.busy:
        return Availability(accelerator, State.BUSY, gpus)
    return Availability(accelerator, State.AWAY if verdict.away else State.ABSENT, gpus)


def _what_decides(pod: Mapping[str, Any]) -> dict[str, Any]:
    """The pod without what no rule looks at; rules read it once for every accelerator.

    There is scratch space in place of its claims, which KubeSpawner has yet to make.
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
