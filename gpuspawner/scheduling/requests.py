"""The resources that a pod requests, and the resources that it holds once it runs.

The formula is that of component-helpers `resource/helpers.go` (v0.36.2, and v0.37.2 for the newer
resize rules): init containers run one after another, sidecars keep running, and overhead is added.
Sums are exact. Each pod is rounded up once: CPU to millicores, everything else to whole units.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from gpuspawner.kube.meta import Quantities, ResourceRequirements
from gpuspawner.kube.pods import Container, ContainerStatus, Pod
from gpuspawner.kube.quantity import QuantityError, millis_of, parse_nanos, whole_of

from .rules import Resize, Rules

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"

Amounts = Mapping[str, int]
"""Resource name to amount: millicores for `cpu`, whole units (bytes, devices) for all others. Pods
with the same requests share one."""

IMPLICIT_DEVICE_CLASS = "deviceclass.resource.kubernetes.io/"
"""With the name of a DeviceClass behind it, this is a resource that the class serves."""

_MOST_SHARED = 32
"""The most resources in amounts that pods share: what is shared outlives its pods."""

_Nanos = dict[str, int]

_QUALIFIED = re.compile(
    r"(?:(?=.{1,253}/)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*/)?"
    r"(?=.{1,63}\Z)[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
)


def pod_requests(pod: Pod, rules: Rules) -> Amounts:
    """Return the resources that a pod without a node requests, by its spec.

    A limit without a request counts as the request: the API server sets this default.

    Raises:
        QuantityError: a request isn't a quantity, or exceeds 64 bits.
    """
    sums = _aggregate(pod, _spec_or_limit_of)
    if rules.pod_level_resources and pod.spec.resources:
        _default_pod_level(sums, pod.spec.resources)
    return _rounded(_with_pod_level(pod, rules, sums, resized=False))


def held(pod: Pod, rules: Rules) -> Amounts:
    """Return the resources that a pod holds on its node. During a resize, its status counts too.

    Raises:
        QuantityError: a request isn't a quantity, or exceeds 64 bits.
    """
    if rules.resize is Resize.SPEC:
        sums = _aggregate(pod, _spec_of)
    elif rules.resize is Resize.MAX_PER_CONTAINER:
        sums = _max_per_container(pod)
    else:
        sums = _max_of_sums(pod, rules)
    return _rounded(_with_pod_level(pod, rules, sums, resized=rules.pod_level_resize))


def allocatable(quantities: Quantities | None) -> Amounts:
    """Return a node's `allocatable` or `capacity` as amounts.

    Raises:
        QuantityError: a value isn't a quantity, or exceeds 64 bits.
    """
    nanos = _nanos(quantities)
    amounts = dict(_rounded(nanos))
    if PODS in nanos:
        amounts[PODS] = whole_of(nanos[PODS])
    return amounts


@lru_cache(maxsize=4096)
def is_scalar(resource: str) -> bool:
    """Return whether the scheduler counts a resource besides cpu, memory and ephemeral-storage."""
    if resource.startswith(("hugepages-", "attachable-volumes-")) or "kubernetes.io/" in resource:
        return True
    return is_extended(resource)


@lru_cache(maxsize=4096)
def is_extended(resource: str) -> bool:
    """Return whether a resource is an extended resource, for example "nvidia.com/gpu"."""
    if "/" not in resource or "kubernetes.io/" in resource or resource.startswith("requests."):
        return False
    return _QUALIFIED.fullmatch("requests." + resource) is not None


@lru_cache(maxsize=4096)
def is_device(resource: str) -> bool:
    """Return whether a resource is one of devices: the scheduler counts it, and it has a domain.

    Besides extended resources, these are those in Kubernetes' own domain, which old device plugins
    and DeviceClasses use.
    """
    return "/" in resource and is_scalar(resource)


def is_claimable(resource: str) -> bool:
    """Return whether a DeviceClass may serve a resource."""
    return is_extended(resource) or resource.startswith(IMPLICIT_DEVICE_CLASS)


def restarts(container: Container) -> bool:
    """Return whether an init container keeps running (a sidecar)."""
    return container.restart_policy == "Always"


def _spec_of(container: Container) -> _Nanos:
    return _nanos(container.resources.requests) if container.resources else {}


def _spec_or_limit_of(container: Container) -> _Nanos:
    resources = container.resources
    if resources is None:
        return {}
    return {**_nanos(resources.limits), **_nanos(resources.requests)}


def _aggregate(pod: Pod, requests_of: Callable[[Container], _Nanos]) -> _Nanos:
    main: _Nanos = {}
    for container in pod.spec.containers or ():
        _add(main, requests_of(container))
    if not pod.spec.init_containers:
        return main
    staying: _Nanos = {}
    peak: _Nanos = {}
    for container in pod.spec.init_containers:
        requests = requests_of(container)
        if restarts(container):
            _add(main, requests)
            _add(staying, requests)
            requests = staying
        else:
            requests = dict(requests)
            _add(requests, staying)
        _raise_to(peak, requests)
    _raise_to(main, peak)
    return main


def _statuses(pod: Pod) -> dict[str, ContainerStatus]:
    both = (pod.status.container_statuses or []) + (pod.status.init_container_statuses or [])
    return {status.name: status for status in both}


def _resize_infeasible(pod: Pod) -> bool:
    for condition in pod.status.conditions or ():
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _max_per_container(pod: Pod) -> _Nanos:
    """Apply the rule of 1.33 to 1.36: `determineEffectiveRequests` for each container."""
    statuses = _statuses(pod)
    infeasible = _resize_infeasible(pod)
    sidecars = {id(c) for c in pod.spec.init_containers or () if restarts(c)}
    inits = {id(c) for c in pod.spec.init_containers or ()}

    def effective(container: Container) -> _Nanos:
        status = statuses.get(container.name)
        spec = _spec_of(container)
        counted = id(container) not in inits or id(container) in sidecars
        if not counted or status is None or status.resources is None:
            return spec
        parts = [_nanos(status.resources.requests), _nanos(status.allocated_resources)]
        return _maximum(parts if infeasible else [spec, *parts])

    return _aggregate(pod, effective)


def _max_of_sums(pod: Pod, rules: Rules) -> _Nanos:
    """Apply the rule since 1.37: the maximum of the sums of spec, allocation and status."""
    statuses = _statuses(pod)
    infeasible = _resize_infeasible(pod)
    spec = _aggregate(pod, _spec_of)

    def allocated_of(container: Container) -> _Nanos:
        status = statuses.get(container.name)
        if status is not None and status.allocated_resources is not None:
            return _nanos(status.allocated_resources)
        return {} if infeasible else _spec_of(container)

    def actuated_of(container: Container) -> _Nanos:
        status = statuses.get(container.name)
        if status is not None and status.resources and status.resources.requests is not None:
            return _nanos(status.resources.requests)
        return allocated_of(container)

    of_pod = pod.status.resources
    if (
        rules.pod_level_resize
        and pod.status.allocated_resources is not None
        and of_pod is not None
        and of_pod.requests is not None
    ):
        allocated, actuated = _nanos(pod.status.allocated_resources), _nanos(of_pod.requests)
    else:
        allocated, actuated = _aggregate(pod, allocated_of), _aggregate(pod, actuated_of)
    return _maximum([actuated, allocated] if infeasible else [spec, actuated, allocated])


def _with_pod_level(pod: Pod, rules: Rules, sums: _Nanos, *, resized: bool) -> _Nanos:
    wanted = _nanos(pod.spec.resources.requests) if pod.spec.resources else {}
    if rules.pod_level_resources and any(map(_is_pod_level, wanted)):
        effective = wanted
        if resized and pod.status.resources is not None:
            parts = [_nanos(pod.status.resources.requests), _nanos(pod.status.allocated_resources)]
            effective = _maximum(parts if _resize_infeasible(pod) else [wanted, *parts])
            if rules.resize is not Resize.MAX_OF_SUMS:
                effective = {name: effective.get(name, 0) for name in wanted}
        sums.update((name, n) for name, n in effective.items() if _is_pod_level(name))
    if pod.spec.overhead:
        _add(sums, _nanos(pod.spec.overhead))
    return sums


def _default_pod_level(sums: _Nanos, resources: ResourceRequirements) -> None:
    """Count a pod's limit as its request, like `defaultPodRequests` in apis/core/v1.

    If containers request cpu or memory, their sum is the pod's request.
    """
    for name, limit in _nanos(resources.limits).items():
        if _is_pod_level(name) and (name not in sums or name not in (CPU, MEMORY)):
            sums[name] = limit


def _is_pod_level(resource: str) -> bool:
    return resource in (CPU, MEMORY) or resource.startswith("hugepages-")


def _nanos(quantities: Quantities | None) -> _Nanos:
    if not quantities:
        return {}
    return {
        name: parse_nanos(quantity if type(quantity) is str else _text(quantity))
        for name, quantity in quantities.items()
    }


def _text(quantity: object) -> str:
    if isinstance(quantity, bool):
        raise QuantityError(f"{quantity} is not a quantity")
    return str(quantity)


def _add(sums: _Nanos, more: _Nanos) -> None:
    for name, nanos in more.items():
        sums[name] = sums.get(name, 0) + nanos


def _raise_to(sums: _Nanos, least: _Nanos) -> None:
    for name, nanos in least.items():
        if name not in sums or nanos > sums[name]:
            sums[name] = nanos


def _maximum(parts: Iterable[_Nanos]) -> _Nanos:
    result: _Nanos = {}
    for part in parts:
        _raise_to(result, part)
    return result


def _rounded(nanos: _Nanos) -> Amounts:
    items = tuple(nanos.items())
    return _shared(items) if len(items) <= _MOST_SHARED else _amounts(items)


@lru_cache(maxsize=8192)
def _shared(items: tuple[tuple[str, int], ...]) -> Amounts:
    return _amounts(items)


def _amounts(items: tuple[tuple[str, int], ...]) -> Amounts:
    amounts: dict[str, int] = {}
    for name, nanos in items:
        if name == CPU:
            amounts[name] = millis_of(nanos)
        elif name in (MEMORY, EPHEMERAL_STORAGE) or is_scalar(name):
            amounts[name] = whole_of(nanos)
    return amounts
