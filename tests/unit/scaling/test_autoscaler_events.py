"""What autoscalers say of a pod in its events."""

from __future__ import annotations

import msgspec
import pytest

from gpuspawner.kube.autoscaling import Event
from gpuspawner.scaling.autoscaler_events import AutoscalerAnswer, Coming, Refused, answer
from gpuspawner.scaling.outlook import Source, WhyNoNode

pytestmark = pytest.mark.each_python

NOT = "pod didn't trigger scale-up: "


def said(reason: str, message: str, reporter: str = "") -> AutoscalerAnswer | None:
    plain = {"reason": reason, "message": message, "reportingComponent": reporter}
    return answer(msgspec.convert(plain, Event))


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ("2 max node group size reached", WhyNoNode.AT_MAXIMUM),
        ("max total nodes in cluster reached", WhyNoNode.AT_MAXIMUM),
        ("1 in backoff after failed scale-up, 1 Insufficient nvidia.com/gpu", WhyNoNode.STOCK_OUT),
        ('1 exceeded quota: "cluster-wide", resources: nvidia.com/gpu', WhyNoNode.LIMIT),
        ("1 max cluster cpu, memory limit reached", WhyNoNode.LIMIT),
        ("1 not ready for scale-up", WhyNoNode.REFUSED),
        ("1 node(s) didn't match Pod's node affinity/selector", WhyNoNode.NO_SUCH_MACHINE),
        ("3 Insufficient nvidia.com/gpu", WhyNoNode.NO_SUCH_MACHINE),
        (
            "2 node(s) had volume node affinity conflict, 1 max node group size reached",
            WhyNoNode.AT_MAXIMUM,
        ),
        ("", WhyNoNode.REFUSED),
    ],
)
def test_cluster_autoscalers_no_tells_its_reason(message, why) -> None:
    found = said("NotTriggerScaleUp", NOT + message, "cluster-autoscaler")

    assert isinstance(found, Refused)
    assert (found.source, found.obstacle.why) == (Source.CLUSTER_AUTOSCALER, why)
    assert found.obstacle.detail == NOT + message


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ("all available instance types exceed limits for nodepool (NodePool=gpu)", WhyNoNode.LIMIT),
        ("node limits have been exhausted for nodepool (NodePool=gpu)", WhyNoNode.AT_MAXIMUM),
        ("no instance type has enough resources, requirements=x", WhyNoNode.NO_SUCH_MACHINE),
        ("no instance type met all requirements, requirements=x", WhyNoNode.NO_SUCH_MACHINE),
        (
            "no instance type met the scheduling requirements or had a required offering, x=y",
            WhyNoNode.NO_SUCH_MACHINE,
        ),
        (
            "no instance type which met the requirements, had a required offering, x=y",
            WhyNoNode.STOCK_OUT,
        ),
        ("no instance type has the required offering, requirements=x", WhyNoNode.STOCK_OUT),
        (
            'incompatible requirements, label "x" does not have known values',
            WhyNoNode.NO_SUCH_MACHINE,
        ),
        ("did not tolerate taint (taint=a=b:NoSchedule)", WhyNoNode.NO_SUCH_MACHINE),
        ("pod has requirements that are not yet supported by Karpenter", WhyNoNode.NO_SUCH_MACHINE),
        ("something new", WhyNoNode.REFUSED),
    ],
)
@pytest.mark.parametrize("reporter", ["karpenter", "eks-auto-mode/compute"])
def test_karpenters_no_tells_its_reason_under_each_of_its_names(message, why, reporter) -> None:
    found = said("FailedScheduling", f"Failed to schedule pod, {message}", reporter)

    assert isinstance(found, Refused)
    assert (found.source, found.obstacle.why) == (Source.KARPENTER, why)


@pytest.mark.parametrize(
    ("message", "is_of_round"),
    [
        ("all available instance types exceed limits for nodepool (NodePool=gpu)", True),
        ("no instance type has enough resources, requirements=x", True),
        ("no instance type which met all requirements had the required resources, x=y", True),
        ("no instance type met all requirements, requirements=x", False),
        ("did not tolerate taint (taint=a=b:NoSchedule)", False),
        ("node limits have been exhausted for nodepool (NodePool=gpu)", False),
    ],
)
def test_karpenters_no_may_hold_for_one_round_if_a_limit_can_be_the_reason(
    message, is_of_round
) -> None:
    found = said("FailedScheduling", f"Failed to schedule pod, {message}")

    assert isinstance(found, Refused)
    assert found.is_of_round == is_of_round


@pytest.mark.parametrize("reporter", ["karpenter", "eks-auto-mode/compute"])
def test_karpenters_nomination_is_a_node_on_its_way(reporter) -> None:
    text = "Pod should schedule on: nodeclaim/gpu-x7k2p"

    assert said("Nominated", text, reporter) == Coming(Source.KARPENTER, claim="gpu-x7k2p")
    assert said("Nominated", "Pod should schedule on: node/n") == Coming(Source.KARPENTER)


def test_a_scale_up_names_its_group() -> None:
    text = "pod triggered scale-up: [{eks-gpu-4ac1 3->4 (max: 5)}]"

    assert said("TriggeredScaleUp", text) == Coming(Source.CLUSTER_AUTOSCALER, "eks-gpu-4ac1")
    assert said("TriggeredScaleUp", "pod triggered scale-up") == Coming(Source.CLUSTER_AUTOSCALER)


@pytest.mark.timeout(60)  # if it isn't read in one pass, it takes hours
def test_a_hostile_answer_is_read() -> None:
    assert said("TriggeredScaleUp", "{" * 1_000_000) == Coming(Source.CLUSTER_AUTOSCALER)


OF_SCHEDULER = (
    "1 pod has unbound immediate PersistentVolumeClaims",
    "1 pod has unbound immediate PersistentVolumeClaims, 1 max node group size reached",
    '1 persistentvolumeclaim "claim-a" not found',
    '1 persistentvolumeclaim "claim-a" is being deleted',
    '1 persistentvolumeclaim "claim-a" bound to non-existent persistentvolume "pv"',
    '1 persistentvolume "pv" not found',
    '1 waiting for ephemeral volume controller to create the persistentvolumeclaim "a-scratch"',
    "1 PVC jhub/a-scratch was not created for pod jhub/a (pod is not owner)",
    "1 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
)
OF_KARPENTER = (
    "failed to validate pvc, pvc with immediate volume binding mode must be bound (StorageClass=x)",
    "pvc is considered unbound because it does not contain annotation (annotation=x)",
    'getting persistent volume claim, persistentvolumeclaims "claim-a" not found',
    "persistentvolumeclaim is being deleted (PersistentVolumeClaim=x)",
    "persistentvolumeclaim bound to non-existent persistentvolume (PersistentVolumeClaim=x)",
    "unbound pvc must define a storage class (PersistentVolumeClaim=x, StorageClass=)",
)


@pytest.mark.parametrize("message", OF_SCHEDULER)
def test_a_claim_that_is_not_ready_is_no_answer_of_cluster_autoscaler_s(message) -> None:
    assert said("NotTriggerScaleUp", NOT + message) is None


@pytest.mark.parametrize("message", OF_KARPENTER)
def test_nor_is_it_one_of_karpenter_s(message) -> None:
    assert said("FailedScheduling", f"Failed to schedule pod, {message}") is None


@pytest.mark.parametrize(
    "message", ["provisioner is not supported", "storage class uses unsupported topology key"]
)
def test_a_kind_of_storage_that_karpenter_never_serves_is_a_no(message) -> None:
    text = f"Failed to schedule pod, failed to validate pvc, {message} (StorageClass=x)"

    assert isinstance(said("FailedScheduling", text), Refused)


@pytest.mark.parametrize(
    ("reason", "message", "reporter"),
    [
        ("Scheduled", NOT, "cluster-autoscaler"),
        ("", NOT, "cluster-autoscaler"),
        ("FailedScheduling", "0/3 nodes are available: 3 Insufficient cpu.", "default-scheduler"),
        ("Nominated", "for the prize", "volcano"),
    ],
)
def test_other_events_say_nothing(reason, message, reporter) -> None:
    assert said(reason, message, reporter) is None
