import pytest

from gpuspawner.scheduling import Outcome, Rules, Why
from tests.unit.makers.objects import affinity, answer, node, pod, term
from tests.unit.makers.storage import WAIT, claim, uses, volume

GPU = "nvidia.com/gpu"
ONE = {"gpu": "1"}
GPUS_BY_CLAIM = {"metadata": {"name": "g"}, "spec": {"extendedResourceName": GPU}}


@pytest.mark.parametrize(
    ("fields", "why", "detail"),
    [
        ({"schedulerName": "volcano"}, Why.OTHER_SCHEDULER, "volcano"),
        ({"schedulingGates": [{"name": "kueue"}]}, Why.GATED, "kueue"),
        ({"schedulingGroup": {"podGroupName": "g"}}, Why.GROUPED, "schedulingGroup"),
        ({"workloadRef": {"name": "w", "podGroup": "g"}}, Why.GROUPED, "workloadRef"),
    ],
)
@pytest.mark.parametrize("requests", [{}, {"gpu": "99"}])
def test_features_outside_the_default_rules_make_the_verdict_unknown(fields, why, detail, requests):
    verdict = answer(pod(requests=requests, **fields), node(gpu="1"))
    assert verdict.outcome is Outcome.UNKNOWN
    assert [(doubt.why, doubt.detail) for doubt in verdict.unknown] == [(why, detail)]


CLAIM = {"resourceClaims": [{"name": "gpu"}]}
RULES = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}]
RESTARTING = {"containers": [{"name": "c", "restartPolicyRules": RULES}]}


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        (CLAIM, Why.DEVICE_CLAIM),
        ({"hostNetwork": True, "hostUsers": False}, Why.NODE_FEATURE),
        (RESTARTING, Why.NODE_FEATURE),
    ],
    ids=["a claim", "host users", "restart rules"],
)
def test_a_rule_that_only_takes_nodes_away_leaves_refused_what_selects_no_node(fields, why):
    fitting = answer(pod(**fields), node())
    assert fitting.outcome is Outcome.UNKNOWN
    assert [doubt.why for doubt in fitting.unknown] == [why]
    refused = answer(pod(nodeSelector={"gpu": "h200"}, **fields), node())
    assert (refused.outcome, refused.unknown) == (Outcome.IMPOSSIBLE, ())


def test_a_claim_leaves_refused_what_needs_more_than_a_node_has():
    most = answer(pod(requests={"memory": "900Gi"}, **CLAIM), node())
    assert (most.outcome, most.unknown) == (Outcome.IMPOSSIBLE, ())
    full = {"pods": [pod("old", node="a", requests=ONE)]}
    assert answer(pod(requests=ONE, **CLAIM), node(gpu="1"), **full).outcome is Outcome.BUSY


def test_a_claim_leaves_unknown_what_would_fit_after_preemption():
    low = pod("low", node="a", requests=ONE, priority=-1)
    verdict = answer(pod(requests=ONE, priority=0, **CLAIM), node(gpu="1"), pods=[low])
    assert verdict.outcome is Outcome.UNKNOWN


def test_unknown_volumes_leave_unknown_what_would_fit_after_preemption():
    low = {"pods": [pod("low", node="a", requests=ONE, priority=-1)]}
    asks = pod(requests=ONE, priority=0, **uses("home"))
    home = {"persistentVolumeClaims": [claim("home")], "persistentVolumes": None}

    verdict = answer(asks, node(gpu="1"), **low, **home)

    assert verdict.outcome is Outcome.UNKNOWN
    assert Why.NOT_KNOWN in {doubt.why for doubt in verdict.unknown}
    asks["spec"]["preemptionPolicy"] = "Never"
    assert answer(asks, node(gpu="1"), **low, **home).outcome is Outcome.BUSY


def test_a_listed_scheduler_counts_like_the_default_scheduler():
    rules = Rules.of_version("1.36", schedulers=["user-scheduler"])
    verdict = answer(pod(schedulerName="user-scheduler"), node(), rules=rules)
    assert verdict.outcome is Outcome.FITS


def by_claim(pod, *nodes, **objects):
    """Evaluate a pod where a DeviceClass serves its GPUs."""
    return answer(pod, *nodes, deviceClasses=[GPUS_BY_CLAIM], **objects)


def test_a_refusal_is_unknown_where_a_device_class_shows_that_claims_serve_the_resource():
    served = by_claim(pod(requests=ONE), node())
    assert (served.outcome, served.unknown[0].why) == (Outcome.UNKNOWN, Why.DEVICE_CLAIM)
    assert answer(pod(requests=ONE), node()).outcome is Outcome.IMPOSSIBLE


def test_device_claims_leave_refused_what_the_other_rules_refuse():
    asks = {"requests": ONE}
    small, full, taken = node(cpu="1"), node(gpu="1"), pod("old", node="a", requests=ONE)

    assert by_claim(pod(**asks, nodeSelector={"no": "node"}), node()).outcome is Outcome.IMPOSSIBLE
    assert by_claim(pod(requests={**ONE, "cpu": "2"}), small).outcome is Outcome.IMPOSSIBLE
    assert by_claim(pod(**asks), full, pods=[taken]).outcome is Outcome.BUSY


def test_a_node_with_devices_by_claim_is_busy_while_others_have_the_rest():
    asks = pod(requests={**ONE, "cpu": "2"})
    others = pod("old", node="a", requests={"cpu": "7"})

    busy, away = by_claim(asks, node(), pods=[others]), by_claim(asks, node(unschedulable=True))
    assert (busy.outcome, busy.busy, busy.away) == (Outcome.BUSY, ("a",), ())
    assert (away.outcome, away.busy, away.away) == (Outcome.BUSY, (), ("a",))
    assert by_claim(asks, node(cpu="8")).outcome is Outcome.UNKNOWN
    urgent = {"metadata": {"name": "urgent"}, "value": 9, "globalDefault": True}
    freed = by_claim(asks, node(cpu="8"), pods=[others], priorityClasses=[urgent])
    assert freed.outcome is Outcome.UNKNOWN


PORT = [{"name": "c", "ports": [{"containerPort": 1, "hostPort": 1}]}]
STAYS = {"ownerReferences": [{"kind": "DaemonSet", "name": "d", "uid": "d", "controller": True}]}


@pytest.mark.parametrize(
    ("low", "asks", "unread"),
    [
        ({"requests": {"cpu": "7"}, "metadata": STAYS}, {"priority": 9}, ()),
        ({"containers": PORT, "metadata": STAYS}, {"priority": 9, "containers": PORT}, ()),
        ({"requests": {"cpu": "7"}}, {"priorityClassName": "high"}, ("priorityClasses",)),
    ],
    ids=["cpu of a DaemonSet", "port of a DaemonSet", "unknown priority"],
)
def test_preemption_may_make_room_on_a_node_with_devices_by_claim(low, asks, unread):
    low = pod("low", node="a", priority=0, **low)
    asks = pod(**{"requests": {"cpu": "2"}, **asks})
    given = {"pods": [low], **dict.fromkeys(unread)}
    assert answer(asks, node(), **given).outcome in (Outcome.FITS_AFTER_PREEMPTION, Outcome.UNKNOWN)
    asks["spec"]["containers"].append({"name": "g", "resources": {"requests": {GPU: "1"}}})
    assert by_claim(asks, node(), **given).outcome is Outcome.UNKNOWN
    asks["spec"]["preemptionPolicy"] = "Never"
    assert by_claim(asks, node(), **given).outcome in (Outcome.BUSY, Outcome.IMPOSSIBLE)


def test_claims_give_on_each_node_only_what_its_device_plugins_lack():
    second = {"metadata": {"name": "h"}, "spec": {"extendedResourceName": "example.com/nic"}}
    classes = [GPUS_BY_CLAIM, second]
    given = {"pods": [pod("old", node="a", requests=ONE)], "deviceClasses": classes}
    asks = pod(requests={**ONE, "example.com/nic": "1"})
    full = answer(asks, node("a", gpu="1"), **given)
    assert (full.outcome, full.busy) == (Outcome.BUSY, ("a",))
    assert answer(asks, node("a", gpu="1"), node("b"), **given).outcome is Outcome.UNKNOWN
    two = pod(requests={"gpu": "2", "example.com/nic": "1"})
    assert answer(two, node("a", gpu="1"), **given).outcome is Outcome.IMPOSSIBLE


MOUNT = {"name": "v", "mountPath": "/v", "bindMountOptions": ["noexec"]}


@pytest.mark.parametrize(
    ("fields", "since"),
    [
        ({"workloadRef": {"name": "w"}}, 35),
        ({"initContainers": [{"name": "i", "volumeMounts": [MOUNT]}]}, 37),
    ],
)
def test_a_field_matters_from_the_version_on_that_reads_it(fields, since):
    asks = pod(**fields)
    before, after = (Rules.of_version(f"1.{minor}") for minor in (since - 1, since))

    assert answer(asks, node(), rules=before).outcome is Outcome.FITS
    assert answer(asks, node(), rules=after).outcome is Outcome.UNKNOWN


def test_without_device_classes_a_resource_that_no_node_has_is_unknown():
    assert answer(pod(requests=ONE), node(), deviceClasses=None).outcome is Outcome.UNKNOWN
    two = answer(pod(requests={"gpu": "2"}), node(gpu="1"), deviceClasses=None)
    assert two.outcome is Outcome.IMPOSSIBLE


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        ("namespaces", Outcome.FITS),
        ("persistentVolumeClaims", Outcome.FITS),
        ("csiNodes", Outcome.FITS),
        ("storageClasses", Outcome.FITS),
        ("pods", Outcome.UNKNOWN),
        ("nodes", Outcome.UNKNOWN),
    ],
)
def test_an_unknown_kind_matters_only_if_it_could_change_the_verdict(kind, outcome):
    nodes = () if kind == "nodes" else (node(),)
    assert answer(pod(), *nodes, **{kind: None}).outcome is outcome


def keeps_away(namespaces=()):
    """Return the anti-affinity to pods in some namespaces, and in others by their labels."""
    more = {"namespaces": namespaces, "namespaceSelector": {"matchLabels": {"team": "x"}}}
    return affinity(away=[term({"a": "b"}, "kubernetes.io/hostname", **more)])


def test_unknown_namespaces_matter_if_a_term_selects_namespaces_by_label():
    assert answer(pod(**keeps_away()), node(), namespaces=None).outcome is Outcome.UNKNOWN


def test_an_undecodable_priority_class_matters_to_pods_that_may_use_it():
    undecodable = [{"metadata": {"name": "high"}, "value": "much"}]
    full = {"pods": [pod("old", node="a", requests=ONE)], "priorityClasses": undecodable}
    for fields in ({"priorityClassName": "high"}, {}):
        verdict = answer(pod(requests=ONE, **fields), node(gpu="1"), **full)
        assert verdict.outcome is Outcome.UNKNOWN
        assert answer(pod(**fields), node(), **full).outcome is Outcome.FITS
    assert answer(pod(requests=ONE, priority=0), node(gpu="1"), **full).outcome is Outcome.BUSY


def test_an_undecodable_claim_does_not_matter_to_a_pod_with_another():
    broken = {**claim("other"), "spec": 5}
    claims = {"persistentVolumeClaims": [claim(volume="disk"), broken]}
    volumes = {"persistentVolumes": [volume(claim="home")], "storageClasses": [WAIT]}
    assert answer(pod(**uses("home")), node(), **claims, **volumes).outcome is Outcome.FITS


def test_undecodable_pods_without_a_name_do_not_hide_each_other():
    undecodable = [{"metadata": 5, "spec": {"nodeName": name}} for name in "ab"]
    assert answer(pod(), node("a"), node("b"), pods=undecodable).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize(
    ("labels", "namespaces", "outcome"),
    [
        ({"a": "b"}, (), Outcome.UNKNOWN),
        ({"a": "other"}, (), Outcome.FITS),
        ({"a": "b"}, ("hub",), Outcome.BUSY),
    ],
)
def test_unknown_namespaces_matter_if_an_existing_pod_may_repel(labels, namespaces, outcome):
    guard = pod("old", node="a", **keeps_away(namespaces))
    asks = pod(labels=labels)
    assert answer(asks, node(), pods=[guard], namespaces=None).outcome is outcome
