"""What one server takes of its owner's limits, by its pod."""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from gpuspawner.kube.pods import Pod, PodSpec
from gpuspawner.kube.servers import SERVER, USER, ServerAnnotations, ServerPod
from gpuspawner.offers.types import Accelerator, nothing
from gpuspawner.offers.vendors import is_gpu
from gpuspawner.policies.policies import Amount, Measure, What, names_resource
from gpuspawner.reservations import granted
from gpuspawner.reservations.granted import Granted
from gpuspawner.scheduling.requests import CPU, MEMORY, pod_requests
from gpuspawner.scheduling.rules import Rules

Who = int | str
"""The id of a user; in a command, which doesn't read the hub's database, a name that pods have."""
Taken = Mapping[Measure, Amount]
"""GPUs, bytes, millicores or servers by measure; what isn't in it is 0."""

_GPU_SERVERS = Measure(What.GPU_SERVERS)
_GPUS = Measure(What.GPUS)
REQUESTED = {What.MEMORY: MEMORY, What.CPU: CPU}
"""What a policy limits by the requests of pods, and the resource that counts."""
_LABEL = "label/"
"""Before a label's value among the names of an owner; no user's name contains a slash."""


@dataclass(frozen=True, slots=True)
class Charge:
    """What one server takes, from its reservation until its pod is gone.

    Attributes:
        owners: The owner's id, or in a command the `owner_names`.
        server: The server's name; "" for the default server.
        policies: The policies that applied when it started.
        groups: The groups whose shares it was charged to.
        accelerator: The key of the one that it got; "" if that isn't known.
    """

    owners: frozenset[Who]
    server: str = ""
    amounts: Taken = field(default_factory=nothing, hash=False)
    policies: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    accelerator: str = ""

    def by(self, said: Granted) -> "Charge":
        """Return it with what its owner got."""
        policies, groups = frozenset(said.policies), frozenset(said.groups)
        return replace(self, policies=policies, groups=groups, accelerator=said.accelerator)

    def of(self, measure: Measure) -> Amount:
        """Return how much it takes of this."""
        return self.amounts.get(measure, 0)

    @property
    def has_gpus(self) -> bool:
        """Whether the server has a GPU, or a part of one."""
        return self.of(_GPU_SERVERS) > 0

    def kind(self, offered: Container[str]) -> str:
        """Return the key of its accelerator, if that is on offer, or else the resource of its GPUs.

        "" without a GPU. Of a profile, `accelerator` is the slug.
        """
        named = next((it for it in (self.accelerator, *self.kinds) if it in offered), None)
        return named or self.device or ""

    @property
    def kinds(self) -> tuple[str, ...]:
        """The resources of its GPUs, and the keys of all accelerators that it may have."""
        return tuple(it.of for it in self.amounts if it.what is What.GPUS and it.of)

    @property
    def device(self) -> str | None:
        """The resource of its GPUs, the first by name; None without one."""
        return min(filter(names_resource, self.kinds), default=None)


def owner_names(name: str, label: str) -> frozenset[str]:
    """Return how pods name an owner: by the annotation with the name, and by KubeSpawner's label.

    Either is enough: older pods may lack the annotation, and anyone may have edited one of them.
    """
    return frozenset(it for it in (name, label and _LABEL + label) if it)


def as_annotated(pod: ServerPod) -> Charge:
    """Return whose server a pod is as it says itself, without amounts; nobody's if it is none."""
    labels = pod.metadata.labels or {}
    annotations = pod.metadata.annotations or ServerAnnotations()
    owners = owner_names(annotations.user, labels.get(USER, ""))
    server = annotations.server or labels.get(SERVER, "")
    return Charge(owners, server).by(granted.read(annotations.grant))


def counts_as_gpu(
    resource: str, accelerators: Iterable[Accelerator], weights: Mapping[str, Amount]
) -> bool:
    """Whether devices of a resource count as GPUs."""
    return (
        is_gpu(resource)
        or resource in weights
        or any(it.resource == resource for it in accelerators)
    )


@dataclass(frozen=True, slots=True)
class Meter:
    """Reads from pods what they take.

    Attributes:
        rules: How the cluster's scheduler counts what a pod requests.
        weights: How much of a GPU one device of a resource is; 1 if it isn't listed.
    """

    rules: Rules
    accelerators: tuple[Accelerator, ...] = ()
    weights: Mapping[str, Amount] = field(default_factory=nothing, hash=False)

    def charge(self, pod: ServerPod, whose: Charge) -> Charge:
        """Return what a pod takes, by its own fields, if it is this server.

        Raises:
            QuantityError: A request isn't a quantity.
        """
        return replace(whose, amounts=self._amounts(pod.spec, whose.accelerator))

    def devices(self, pod: ServerPod) -> int:
        """Return how many devices a pod requests that count as GPUs.

        Raises:
            QuantityError: A request isn't a quantity.
        """
        requests = pod_requests(Pod(spec=pod.spec), self.rules)
        return sum(int(n) for it, n in requests.items() if n and self._counts(it))

    def _amounts(self, spec: PodSpec, named: str) -> Taken:
        """Return what a pod takes.

        *named* is the accelerator that it got. It counts only if the pod's own fields allow
        several.
        """
        requests = pod_requests(Pod(spec=spec), self.rules)
        devices = {it: n for it, n in requests.items() if n and self._counts(it)}
        gpus = {it: self.weights.get(it, 1) * n for it, n in devices.items()}
        taken: dict[Measure, Amount] = {Measure(What.GPUS, it): n for it, n in gpus.items()}
        for key, resource in self._accelerators(spec, gpus, named):
            taken[Measure(What.GPUS, key)] = gpus[resource]
        if gpus:
            taken[_GPUS], taken[_GPU_SERVERS] = sum(gpus.values()), 1
        for what, resource in REQUESTED.items():
            taken[Measure(what)] = requests.get(resource, 0)
        return taken

    def _counts(self, resource: str) -> bool:
        return counts_as_gpu(resource, self.accelerators, self.weights)

    def _accelerators(
        self, spec: PodSpec, resources: Iterable[str], named: str
    ) -> Iterator[tuple[str, str]]:
        """Yield the accelerators that the pod may have, with their resources.

        An accelerator that another one narrows down isn't meant: a pod that selects T4 nodes has a
        T4, even if there is an accelerator for any GPU.
        """
        labels = (spec.node_selector or {}).items()
        for resource in resources:
            selected = [
                it
                for it in self.accelerators
                if it.resource == resource and it.node_selector.items() <= labels
            ]
            possible = [it.key for it in selected if not any(by.narrows(it) for by in selected)]
            for key in [named] if named in possible else possible:
                yield key, resource
