"""The signs of autoscalers that the hub can't see, and of those that make pools by themselves.

On a cloud's managed Kubernetes, a pool may grow although nothing in the cluster says so. Sources:
the clouds' documentation of node labels and provider ids; ``cloudprovider`` of Cluster Autoscaler
(1.36); for the rest, what is named below. Who installs none of these has no autoscaler.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain

import msgspec

from gpuspawner.cluster.client import Client
from gpuspawner.cluster.kinds import KARPENTER_KINDS, MACHINE_KINDS, ObjectKind, status_at
from gpuspawner.scaling.outlook import Source
from gpuspawner.scheduling.node_info import NodeInfo


class Sign(msgspec.Struct, frozen=True):
    """What one autoscaler, or those of many clouds, leave on nodes and in the API.

    Attributes:
        source: Who answers for its pools.
        pools: Labels of nodes that name their pool.
        marks: Other labels and annotations of nodes, and what ``spec.providerID`` begins with.
        kinds: Objects that it needs. If all kinds are known and one has no object, it doesn't run.
        makes_pools: Whether it also makes pools, which nothing lists before they exist.
    """

    source: Source
    pools: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    makes_pools: bool = False


# Also AKS node auto-provisioning and EKS Auto Mode; the second label is that of v1alpha5.
_KARPENTER = Sign(
    Source.KARPENTER, marks=("karpenter.sh/nodepool", "karpenter.sh/provisioner-name")
)
_CA = Source.CLUSTER_AUTOSCALER
_OPENSHIFT = "machine.openshift.io/machine"

SIGNS = (
    _KARPENTER,
    # GKE makes pools in Autopilot mode, with node auto-provisioning (names begin with nap-) and for
    # ComputeClasses. No label says whether it may: before the first such pool, there is none.
    Sign(_CA, ("cloud.google.com/gke-nodepool",), makes_pools=True),
    # CAST AI and Spot Ocean have no pools in the cluster at all.
    Sign(Source.NODES, (), ("provisioner.cast.ai/managed-by", "spotinst.io/node-lifecycle"),
         makes_pools=True),
    # OpenShift's Machine API (cluster-autoscaler-operator, August 2026).
    Sign(_CA, (), (_OPENSHIFT,), ("ClusterAutoscaler", "MachineAutoscaler")),
    # Cluster API annotates the nodes of sets of machines, which another cluster may manage
    # (machine_controller_noderef.go of v1.12); so do Kubermatic's machine-controller and Gardener's
    # machine-controller-manager, which Deckhouse uses, too.
    Sign(_CA, (), ("cluster.x-k8s.io/owner-kind", "cluster.k8s.io/machine",
                   "node.machine.sapcloud.io/last-applied-anno-labels-taints")),
    # Clouds, and tools that make clusters there.
    Sign(
        _CA,
        (
            "eks.amazonaws.com/nodegroup", "alpha.eksctl.io/nodegroup-name",
            "kubernetes.azure.com/agentpool", "agentpool", "kops.k8s.io/instancegroup",
            "doks.digitalocean.com/node-pool", "lke.linode.com/pool-id", "k8s.scaleway.com/pool",
            "node.cluster.x-k8s.io/deployment", "hypershift.openshift.io/nodePool",
            "alibabacloud.com/nodepool-id", "node.alibabacloud.com/nodepool-id",
            "cce.cloud.com/cce-nodepool", "tke.cloud.tencent.com/nodepool-id",
            "cloud.tencent.com/auto-scaling-group-id", "compute.coreweave.com/node-pool",
            "crusoe.ai/nodepool.id", "nebius.com/node-group-id", "yandex.cloud/node-group-id",
            "oci.oraclecloud.com/node-pool-id", "oke.oraclecloud.com/pool.name",
            "ibm-cloud.kubernetes.io/worker-pool-id", "kubernetes.civo.com/civo-node-pool",
            "magnum.openstack.org/nodegroup", "node.exoscale.net/nodepool-id", "hcloud/node-group",
            "vke.vultr.com/node-pool", "worker.gardener.cloud/pool",
        ),
        (
            "aws", "azure", "bizflycloud", "brightbox", "cce", "cherryservers", "civo",
            "cloudstack", "crusoe", "digitalocean", "equinixmetal", "exoscale",
            "external-cloudstack", "gce", "hcloud", "ibm", "ionos", "kamatera", "linode", "nebius",
            "oci", "ocid1", "openstack", "ovh", "packet", "qcloud", "scaleway", "upcloud", "utho",
            "verdacloud", "volcengine", "vultr", "yandex", ".i-",
        ),
    ),
)  # fmt: skip

POOL_LABELS = tuple(chain.from_iterable(it.pools for it in SIGNS))
"""The labels by which clouds and tools name a node's pool."""

_MARKS = frozenset(chain.from_iterable((*it.pools, *it.marks) for it in SIGNS))

_PATIENCE = 5.0

# aws:///zone/i-1, ocid1.instance.oc1.x, and cn-hangzhou.i-1 of Alibaba Cloud
_PROVIDER = re.compile(r"([\w-]+)://|(ocid1)\.|[\w-]+(\.i-)")


def signs(nodes: Iterable[NodeInfo]) -> tuple[Sign, ...]:
    """Return the signs that nodes show."""
    found = set(chain.from_iterable(map(_shown, nodes)))
    return tuple(it for it in SIGNS if not found.isdisjoint((*it.pools, *it.marks)))


def _shown(node: NodeInfo) -> Iterator[str]:
    shown = _MARKS.intersection(node.labels)
    yield from shown
    # What Karpenter has made says nothing of pools.
    if node.node is None or not shown.isdisjoint(_KARPENTER.marks):
        return
    marks = _MARKS.intersection(node.node.metadata.annotations or ())
    yield from marks
    # OpenShift's machines are on clouds, too, but only its own objects let them grow.
    if _OPENSHIFT in marks:
        return
    if provider := _PROVIDER.match(node.node.spec.provider_id):
        yield provider[provider.lastindex or 0]


async def autoscaler_kinds(
    client: Client, nodes: Iterable[NodeInfo], status: str
) -> tuple[ObjectKind, ...]:
    """Return the kinds of objects that tell about the cluster's autoscalers.

    A hub that may not read Karpenter's objects can still see that the API server has this API.
    Others show themselves only by the nodes. Cluster Autoscaler's *status* is ``namespace/name``.
    """
    found = signs(nodes)
    sources = {it.source for it in found}
    has_karpenter = Source.KARPENTER in sources or await client.serves(
        KARPENTER_KINDS[0].group, _PATIENCE
    )
    return (
        *(KARPENTER_KINDS if has_karpenter else ()),
        *(it for it in MACHINE_KINDS if any(it.name in sign.kinds for sign in found)),
        *((status_at(status),) if Source.CLUSTER_AUTOSCALER in sources else ()),
    )
