"""Compares a pod before and after admission."""

from collections.abc import Mapping
from fractions import Fraction

from gpuspawner.kube.quantity import QuantityError, parse_quantity

# DefaultTolerationSeconds adds these to every pod; they let it stay on a node, not be placed there.
_OF_EVERY_POD = {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}
_AS_WRITTEN = ("nodeSelector", "affinity", "overhead", "priorityClassName", "runtimeClassName")


def changes(sent: object, admitted: object) -> bool:
    """Whether two pods, as the API writes them, differ in a field that the scheduler uses."""
    try:
        return _deciding(sent) != _deciding(admitted)
    except QuantityError:
        return True


def _deciding(pod: object) -> tuple[object, ...]:
    spec = _mapping(_mapping(pod).get("spec"))
    return (
        [spec.get(name) or None for name in _AS_WRITTEN],
        spec.get("schedulerName") or "default-scheduler",
        spec.get("topologySpreadConstraints") or [],
        [its for its in _list(spec, "tolerations") if not _is_of_every_pod(its)],
        [_requests(container) for container in _list(spec, "initContainers")],
        [_requests(container) for container in _list(spec, "containers")],
    )


def _is_of_every_pod(toleration: Mapping[str, object]) -> bool:
    return toleration.get("effect") == "NoExecute" and toleration.get("key") in _OF_EVERY_POD


def _requests(container: Mapping[str, object]) -> dict[str, Fraction]:
    """Return what the container requests; a limit without a request counts as one."""
    resources = _mapping(container.get("resources"))
    stated = {**_mapping(resources.get("limits")), **_mapping(resources.get("requests"))}
    return {str(name): parse_quantity(str(quantity)) for name, quantity in stated.items()}


def _list(spec: Mapping[str, object], name: str) -> list[Mapping[str, object]]:
    items = spec.get(name)
    return [_mapping(item) for item in items] if isinstance(items, list) else []


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}
