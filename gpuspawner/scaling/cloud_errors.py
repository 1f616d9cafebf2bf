"""Why a cloud delivered no machine, by the codes and texts that reach the cluster.

An administrator can have a quota raised; a stock-out passes. Sources, of August 2026: Cluster
Autoscaler's ``cloudprovider/{gce,aws,azure,oci}`` and what their APIs answer to a request for a
machine, GKE's event ``FailedScaleUp`` (``pkg/visibility`` of its autoscaler), and the reasons in
Karpenter's condition ``Launched`` (``pkg/errors`` for AWS, ``pkg/providers/instance/offerings`` for
Azure).
"""

import re

from gpuspawner.kube.autoscaling import NodeClaim
from gpuspawner.scaling.outlook import Obstacle, WhyNoNode

_NOT_TRIED = ("", "AwaitingReconciliation")

# The first that applies. Clouds also limit how often their API is called.
_SAID = (
    (WhyNoNode.REFUSED, r"request_?limit_?exceeded|rate_?limit_?exceeded|per minute"),
    (WhyNoNode.QUOTA, r"quota|limit_?exceeded|countexceeded|vcpu limit"),
    (WhyNoNode.LIMIT, r"ip_space|ip space|freeaddresses"),
    (WhyNoNode.STOCK_OUT, r"exhausted|capacity|out.of.(resource|stock)|placeholder-cannot"),
    (WhyNoNode.STOCK_OUT, r"allocation_?fail|skunotavailable|resource_unavailable"),
    (WhyNoNode.IN_VAIN, r"timeout|in time"),
)


def why_failed(code: str, text: str = "") -> WhyNoNode:
    """Return why, by the code if that is known, or else by the text."""
    if not code and not text:
        return WhyNoNode.STOCK_OUT
    said = (why for it in (code, text) for why, words in _SAID if re.search(words, it, re.I))
    return next(said, WhyNoNode.REFUSED)


def launch_failure(claim: NodeClaim) -> Obstacle | None:
    """Return why the node of a NodeClaim isn't launched, if Karpenter has tried."""
    for it in claim.status.conditions or ():
        if it.type == "Launched" and it.status != "True" and it.reason not in _NOT_TRIED:
            return Obstacle(why_failed(it.reason, it.message), detail=f"{it.reason}: {it.message}")
    return None
