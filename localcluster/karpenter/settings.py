"""The settings of Karpenter in a fleet: its node pools, and the instance types that it can choose.

::

    autoscaler:
      name: karpenter
      registration_seconds: 5
      device_seconds: 5
      instance_types:
        - name: g2-standard-8
          resources: {cpu: "8", memory: 32Gi, nvidia.com/gpu: "1"}
          labels: {cloud.google.com/gke-accelerator: nvidia-l4}
      node_pools:
        - name: l4
          taints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}]
          requirements:
            - {key: node.kubernetes.io/instance-type, operator: In, values: [g2-standard-8]}
          limits: {nvidia.com/gpu: "2"}
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from localcluster import fields
from localcluster.taint import Taint, parse_taints

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_LARGEST_DELAY = 3600

_T = TypeVar("_T")


@dataclass(frozen=True)
class InstanceType:
    """A kind of machine.

    Attributes:
        name: the value of its nodes' label ``node.kubernetes.io/instance-type``.
        resources: what the machine has; Karpenter keeps a little for the system.
        labels: labels of its nodes. Pods and node pools can ask for them.
        price: Karpenter chooses the cheapest machine that does.
        is_sold_out: the cloud has none left.
    """

    name: str
    resources: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=dict)
    price: float = 1.0
    is_sold_out: bool = False


@dataclass(frozen=True)
class Requirement:
    """A requirement of a node pool as the Kubernetes API has it."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class NodePool:
    """A NodePool: which machines Karpenter may choose, and how much in all."""

    name: str
    requirements: tuple[Requirement, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    limits: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Karpenter:
    """Karpenter and its simulated cloud.

    Attributes:
        instance_types: all machines of the cloud.
        node_pools: the pools.
        registration_seconds: from the request for a machine until it registers, in whole seconds.
        device_seconds: from then until its devices are allocatable.
    """

    instance_types: tuple[InstanceType, ...]
    node_pools: tuple[NodePool, ...]
    registration_seconds: int = 0
    device_seconds: float = 0.0


def parse_karpenter(where: str, data: object) -> Karpenter:
    """Read the ``autoscaler`` of a fleet with Karpenter.

    Raises:
        FleetError: a field is missing, unknown or has an invalid value.
    """
    given = fields.fields(
        where,
        data,
        required=("name", "instance_types", "node_pools"),
        optional=("registration_seconds", "device_seconds"),
    )
    delay = given.get("registration_seconds", 0)
    return Karpenter(
        instance_types=_each(f"{where}.instance_types", given["instance_types"], _instance_type),
        node_pools=_each(f"{where}.node_pools", given["node_pools"], _node_pool),
        registration_seconds=fields.whole_number(
            f"{where}.registration_seconds", delay, _LARGEST_DELAY
        ),
        device_seconds=fields.seconds(f"{where}.device_seconds", given.get("device_seconds", 0)),
    )


def _instance_type(where: str, data: object) -> InstanceType:
    given = fields.fields(
        where,
        data,
        required=("name", "resources"),
        optional=("labels", "price", "is_sold_out"),
    )
    is_sold_out = given.get("is_sold_out", False)
    if not isinstance(is_sold_out, bool):
        raise fields.FleetError(f"{where}.is_sold_out: {is_sold_out!r} is not true or false")
    return InstanceType(
        name=fields.label_value(f"{where}.name", given["name"], "a label value"),
        resources=fields.quantities(f"{where}.resources", given["resources"]),
        labels=fields.labels(f"{where}.labels", given.get("labels", {})),
        price=fields.number(f"{where}.price", given.get("price", 1.0), "a price, 0 or more"),
        is_sold_out=is_sold_out,
    )


def _node_pool(where: str, data: object) -> NodePool:
    given = fields.fields(
        where,
        data,
        required=("name",),
        optional=("requirements", "labels", "taints", "limits"),
    )
    requirements = given.get("requirements", [])
    return NodePool(
        name=fields.name(f"{where}.name", given["name"]),
        requirements=_each(f"{where}.requirements", requirements, _requirement),
        labels=fields.labels(f"{where}.labels", given.get("labels", {})),
        taints=parse_taints(f"{where}.taints", given.get("taints", [])),
        limits=fields.quantities(f"{where}.limits", given.get("limits", {})),
    )


def _requirement(where: str, data: object) -> Requirement:
    given = fields.fields(where, data, required=("key", "operator"), optional=("values",))
    values = fields.items(f"{where}.values", given.get("values", []))
    return Requirement(
        key=fields.qualified_name(f"{where}.key", given["key"]),
        operator=fields.one_of(f"{where}.operator", given["operator"], _OPERATORS),
        values=tuple(fields.label_value(f"{where}.values", v, "a label value") for v in values),
    )


def _each(where: str, data: object, read: Callable[[str, object], _T]) -> tuple[_T, ...]:
    items = fields.items(where, data)
    return tuple(read(f"{where}[{number}]", item) for number, item in enumerate(items))
