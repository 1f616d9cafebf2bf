"""Verdicts for many pods at one moment; pods that are alike are evaluated once.

A class that starts together sends many equal pods.
"""

from dataclasses import dataclass

from msgspec import msgpack, structs

from gpuspawner.kube.objects import Manifest
from gpuspawner.kube.pods import Affinity, Pod, Volume
from gpuspawner.kube.quantity import QuantityError
from gpuspawner.preflight.contention import Demand, requests_with_pod
from gpuspawner.scheduling.evaluate import evaluate
from gpuspawner.scheduling.node_info import host_ports
from gpuspawner.scheduling.requests import pod_requests
from gpuspawner.scheduling.state import ClusterState
from gpuspawner.scheduling.verdict import Outcome, Verdict

_encode = msgpack.Encoder().encode

_Shape = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Subject:
    """The pod to evaluate, and PersistentVolumeClaims that will exist before it."""

    pod: Pod
    new_claims: tuple[Manifest, ...] = ()


class Verdicts:
    """Evaluates pods against a state, which it only reads."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._version = -1
        self._verdicts: dict[_Shape, Verdict] = {}
        self._demands: dict[_Shape, Demand | None] = {}
        self._alike: dict[object, Demand] = {}
        self._repelling = False
        """Whether a running pod keeps others away by its anti-affinity."""

    def verdict(self, subject: Subject) -> Verdict:
        """Return what kube-scheduler would do with the pod at this moment."""
        shape = self._shape(subject)
        verdict = self._verdicts.get(shape)
        if verdict is None:
            verdict = evaluate(self._state, subject.pod, new_claims=subject.new_claims)
            self._verdicts[shape] = verdict
        return verdict

    def demand(self, subject: Subject) -> Demand | None:
        """Return the room that the pod may take at this moment; None if it fits nowhere.

        Equal demands are the same object, even if their pods differ otherwise.
        """
        shape = self._shape(subject)
        if shape not in self._demands:
            self._demands[shape] = self._demand(subject)
        return self._demands[shape]

    def demand_anywhere(self, subject: Subject) -> Demand:
        """Return the room that a pod may take if nobody knows on which node."""
        try:
            return Demand(requests_with_pod(pod_requests(subject.pod, self._state.rules)), None)
        except QuantityError:
            return Demand({}, None, simple=False)

    def _demand(self, subject: Subject) -> Demand | None:
        verdict, pod = self.verdict(subject), subject.pod
        match verdict.outcome:
            case Outcome.FITS:
                requests = requests_with_pod(pod_requests(pod, self._state.rules))
                demand = Demand(requests, frozenset(verdict.feasible), is_simple(pod))
                value = (frozenset(requests.items()), demand.nodes, demand.simple)
                return self._alike.setdefault(value, demand)
            case Outcome.FITS_AFTER_PREEMPTION:
                return Demand({}, None, simple=False)
            case _:
                return None

    def _shape(self, subject: Subject) -> _Shape:
        """Return everything that the verdict can depend on.

        Labels count only if pods select each other by them. Volumes of kinds that we don't read
        have generated names (service account tokens, say) and never decide.
        """
        self._forget_if_changed()
        pod = subject.pod
        volumes = [volume for volume in pod.spec.volumes or () if volume != Volume(volume.name)]
        spec = _encode(structs.replace(pod.spec, volumes=volumes))
        shape = (pod.metadata.namespace, spec, _encode(subject.new_claims))
        if is_simple(pod) and not self._repelling:
            return shape
        return *shape, _encode(pod.metadata.labels), pod.metadata.name

    def _forget_if_changed(self) -> None:
        if self._version == self._state.version:
            return
        self._version = self._state.version
        for kept in (self._verdicts, self._demands, self._alike):
            kept.clear()
        self._repelling = any(info.repelling for info in self._state.nodes.values())


def is_simple(pod: Pod) -> bool:
    """Whether the pod's binding affects other pods only by the amounts it takes.

    Limits on attached volumes don't count: drivers allow dozens a node, and a pod that hits
    the limit only waits until another pod ends.
    """
    affinity = pod.spec.affinity or Affinity()
    return not (
        host_ports(pod)
        or (affinity.pod_affinity and affinity.pod_affinity.required)
        or (affinity.pod_anti_affinity and affinity.pod_anti_affinity.required)
        or any(
            constraint.when_unsatisfiable == "DoNotSchedule"
            for constraint in pod.spec.topology_spread_constraints or ()
        )
    )
