"""The accelerators of helm-values, on clusters with the labels and taints of each cloud."""

from __future__ import annotations

import pytest

from gpuspawner.offers.grant import Grant
from gpuspawner.offers.manifest import apply
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.types import Accelerator
from gpuspawner.scheduling import ClusterState, Outcome, evaluate
from localcluster import fleet
from localcluster.nodes import node_objects
from tests.helm.chart import read

# The other accelerators select node pools that the cloud's fleet lacks.
IN_THE_FLEET = [
    ("gke", "t4"),
    ("gke", "p100"),
    ("eks", "v100"),
    ("aks", "v100"),
    ("on-premises", "a100"),
    ("on-premises", "a100-1g.5gb"),
]
STOCK = {"metadata": {"name": "jupyter-ann"}, "spec": {"containers": [{"name": "notebook"}]}}


def accelerator(cloud: str, key: str) -> Accelerator:
    offered = read(cloud)["hub"]["config"]["GPUSpawner"]["accelerators"]
    return Offers.parse(accelerators=offered).accelerators[key]


@pytest.mark.parametrize(("cloud", "key"), IN_THE_FLEET)
def test_its_nodes_accept_the_pod(cloud: str, key: str):
    state = ClusterState.from_objects(nodes=list(node_objects(fleet.load(cloud))), pods=[])
    offered = accelerator(cloud, key)

    verdict = evaluate(state, apply(STOCK, Grant(offered, gpus=offered.counts[0])))

    assert verdict.outcome == Outcome.FITS
