"""The settings of the played Cluster Autoscaler in a fleet.

A group of nodes says how far it may grow::

    autoscaler: {name: cluster-autoscaler, scan_seconds: 10}
    nodes:
      - name: l4
        count: 0
        scaling: {max_size: 2, provision_seconds: 60, device_seconds: 20}
        allocatable: {...}
"""

from dataclasses import dataclass

from localcluster import fields

LARGEST = 5000


@dataclass(frozen=True)
class Scaling:
    """How a group of nodes may grow and shrink.

    Attributes:
        max_size: the largest number of nodes.
        min_size: the smallest; the autoscaler removes idle nodes down to it.
        provision_seconds: from the request for a node until it registers.
        device_seconds: from then until its extended resources are allocatable, as device plugins
            need time to start.
        stock: how many nodes the cloud can provide; None if there is no limit.
        failure_seconds: from the request for a node that isn't in stock until the cloud says so.
        error_code: the cloud's error code when the stock is exhausted.
        error_message: the cloud's error message.
    """

    max_size: int
    min_size: int = 0
    provision_seconds: float = 60.0
    device_seconds: float = 0.0
    stock: int | None = None
    failure_seconds: float = 5.0
    error_code: str = "RESOURCE_POOL_EXHAUSTED"
    error_message: str = "the zone has no more machines of this type"


@dataclass(frozen=True)
class ClusterAutoscaler:
    """The played Cluster Autoscaler; defaults are those of the real one.

    Attributes:
        scan_seconds: the time between two looks at the cluster.
        backoff_seconds: how long a group is left alone after its first failure. Each further
            failure doubles the time.
        longest_backoff_seconds: the limit of this time.
        scale_down_seconds: how long a node is idle before it is removed; None: it never is.
    """

    scan_seconds: float = 10.0
    backoff_seconds: float = 300.0
    longest_backoff_seconds: float = 1800.0
    scale_down_seconds: float | None = None


def parse_scaling(where: str, data: object) -> Scaling:
    """Read a group's ``scaling``.

    Raises:
        FleetError: a field is missing, unknown or has an invalid value.
    """
    texts = ("error_code", "error_message")
    times = ("provision_seconds", "device_seconds", "failure_seconds")
    sizes = ("min_size", "stock")
    given = fields.fields(where, data, required=("max_size",), optional=(*sizes, *times, *texts))
    read: dict[str, object] = {}
    for key, value in given.items():
        if key in texts:
            read[key] = fields.text(f"{where}.{key}", value)
        elif key in times:
            read[key] = fields.seconds(f"{where}.{key}", value)
        elif key != "stock" or value is not None:
            read[key] = fields.whole_number(f"{where}.{key}", value, LARGEST)
    return Scaling(**read)  # type: ignore[arg-type]  # each value was read as its field's type


def parse_cluster_autoscaler(where: str, data: object) -> ClusterAutoscaler:
    """Read the ``autoscaler`` of a fleet with the played Cluster Autoscaler.

    Raises:
        FleetError: a field is missing, unknown or has an invalid value.
    """
    times = ("scan_seconds", "backoff_seconds", "longest_backoff_seconds", "scale_down_seconds")
    given = fields.fields(where, data, required=("name",), optional=times)
    read: dict[str, object] = {}
    for key in times:
        if (value := given.get(key)) is not None:
            read[key] = fields.seconds(f"{where}.{key}", value)
    return ClusterAutoscaler(**read)  # type: ignore[arg-type]  # as above
