"""Parses what autoscalers say of a pod in its events.

Sources: Cluster Autoscaler's ``processors/status/eventing_scale_up_processor.go`` and
``core/scaleup/orchestrator/skippedreasons.go``, and Karpenter's ``events.go``, ``scheduler.go`` and
``nodeclaim.go`` in ``pkg/controllers/provisioning/scheduling`` (v1.14.1). Only GKE's autoscaler has
an event for a node that has failed to come; it then tries other groups. Karpenter's reason
``FailedScheduling`` is kube-scheduler's too. What it says of claims is in ``volumetopology.go``;
Cluster Autoscaler takes kube-scheduler's words for that. Karpenter reports under several names
(``karpenter``, ``eks-auto-mode/compute``), so its texts tell them apart.
"""

import re

import msgspec

from gpuspawner.kube.autoscaling import Event
from gpuspawner.scaling.cloud_errors import why_failed
from gpuspawner.scaling.outlook import Obstacle, Source, WhyNoNode

_NOMINATED, _FAILED = "Pod should schedule on: ", "Failed to schedule pod, "
_CLAIM = re.compile(r"nodeclaim/([^\s,]+)")
_GROUP = re.compile(r"\{([^\s{}]+) \d+->\d+ \(max: \d+\)\}")

# In this order: a pool whose nodes would help comes before those whose nodes wouldn't.
_PHRASES = (
    ("max node group size reached", WhyNoNode.AT_MAXIMUM),
    ("max total nodes in cluster reached", WhyNoNode.AT_MAXIMUM),
    ("in backoff after failed scale-up", WhyNoNode.STOCK_OUT),
    ("node limits have been exhausted", WhyNoNode.AT_MAXIMUM),
    ("exceeded quota", WhyNoNode.LIMIT),
    ("limit reached", WhyNoNode.LIMIT),
    ("exceed limits", WhyNoNode.LIMIT),
    (", had a required offering", WhyNoNode.STOCK_OUT),
    ("has the required offering", WhyNoNode.STOCK_OUT),
    ("not ready for scale-up", WhyNoNode.REFUSED),
    ("no instance type", WhyNoNode.NO_SUCH_MACHINE),
    ("incompatible", WhyNoNode.NO_SUCH_MACHINE),
    ("did not tolerate", WhyNoNode.NO_SUCH_MACHINE),
    ("not yet supported by Karpenter", WhyNoNode.NO_SUCH_MACHINE),
    ("Insufficient", WhyNoNode.NO_SUCH_MACHINE),
    ("node(s)", WhyNoNode.NO_SUCH_MACHINE),
)

# While a claim or its volume isn't there, neither asks whether a node would help.
_NO_VOLUME_YET = re.compile(
    r"unbound immediate PersistentVolumeClaims|pvc is considered unbound|unbound pvc must"
    r"|failed to validate pvc, (?!provisioner is not|storage class uses)"
    r'|persistentvolumeclaim (?:"[^"]*" )?(?:not found|is being deleted|bound to non-existent)'
    r'|persistentvolume "[^"]*" not found|bound to non-existent pv|getting persistent volume claim'
    r"|controller to create the persistentvolumeclaim|\(pod is not owner\)"
)

# What Karpenter says if limits leave no type, or none that is large enough.
_OF_LIMITS = ("exceed limits", "enough resources", "the required resources")


class Coming(msgspec.Struct, frozen=True):
    """A node is on its way for the pod.

    Attributes:
        source: The autoscaler that says so.
        pool: The group that grows, as Cluster Autoscaler names it; "" if it doesn't say.
        claim: Karpenter's NodeClaim for the node; "" if it doesn't say.
    """

    source: Source
    pool: str = ""
    claim: str = ""


class Refused(msgspec.Struct, frozen=True):
    """An autoscaler adds no node for the pod; another one still may.

    Attributes:
        is_of_round: Whether the same autoscaler may add one in its next rounds, if other pods need
            nodes, too. In one round, Karpenter counts the largest type against the limits for each
            new machine (`subtractMax` in ``scheduler.go``), and says no to the pods behind it. Once
            it knows which types it got, it tries these again, and tells only a yes.
    """

    source: Source
    obstacle: Obstacle
    is_of_round: bool = False


AutoscalerAnswer = Coming | Refused | Obstacle
"""An obstacle alone ended one attempt; the autoscaler may make another."""


def lacks_volume(message: str) -> bool:
    """Whether kube-scheduler or an autoscaler says that a claim or its volume isn't there."""
    return _NO_VOLUME_YET.search(message) is not None


def answer(event: Event) -> AutoscalerAnswer | None:
    """Return an autoscaler's answer about the pod and nodes; None if the event isn't one."""
    message = event.message
    match event.reason:
        case "NotTriggerScaleUp" | "FailedScheduling" if lacks_volume(message):
            return None
        case "TriggeredScaleUp":
            found = _GROUP.search(message)
            return Coming(Source.CLUSTER_AUTOSCALER, found[1] if found else "")
        case "NotTriggerScaleUp":
            return Refused(Source.CLUSTER_AUTOSCALER, Obstacle(_why(message), detail=message))
        case "FailedScaleUp":
            return Obstacle(why_failed(message), detail=message)
        case "Nominated" if message.startswith(_NOMINATED):
            claim = _CLAIM.search(message)
            return Coming(Source.KARPENTER, claim=claim[1] if claim else "")
        case "FailedScheduling" if message.startswith(_FAILED):
            is_of_round = any(it in message for it in _OF_LIMITS)
            return Refused(Source.KARPENTER, Obstacle(_why(message), detail=message), is_of_round)
        case _:
            return None


def _why(message: str) -> WhyNoNode:
    return next((why for phrase, why in _PHRASES if phrase in message), WhyNoNode.REFUSED)
