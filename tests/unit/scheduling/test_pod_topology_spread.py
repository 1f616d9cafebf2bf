"""What kube-scheduler's recorded answers don't say of even spread."""

import pytest

from gpuspawner.scheduling import Outcome, evaluate
from tests.unit.makers.objects import answer, cluster, judge, node, pod, required

APP = {"app": "x"}
NODES = [node(name, labels={"zone": name[0]}) for name in ("a1", "a2", "b1")]


def constraint(**fields):
    return {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": APP},
        **fields,
    }


def asks(**fields):
    return pod(labels=APP, topologySpreadConstraints=[constraint(**fields)])


def old(name, place, **fields):
    return pod(name, node=place, labels=APP, **fields)


def test_of_two_like_nodes_the_one_that_the_pod_excludes_does_not_count():
    nodes = [node(name, labels={"zone": name[0]}) for name in ("a1", "a2", "b1")]
    for plain in nodes:
        del plain["metadata"]["labels"]["kubernetes.io/hostname"]
    other = {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["a2"]}]}
    request = {**asks(), "spec": {**asks()["spec"], **required(other)}}
    verdict = judge(request, *nodes, pods=[old("1", "a2"), old("2", "a2")])
    assert verdict.feasible == ("a1", "b1")


ONLY_A = {"key": "zone", "operator": "In", "values": ["a"]}


@pytest.mark.parametrize(
    ("b1", "policy", "spec"),
    [
        ("tainted", {"nodeTaintsPolicy": "Honor"}, {"tolerations": [{"operator": "Exists"}]}),
        ("free", {}, {"nodeSelector": {"zone": "a"}}),
        ("free", {}, required({"matchExpressions": [ONLY_A]})),
    ],
)
def test_pods_that_may_use_other_nodes_count_them_anew(b1, policy, spec):
    """What one pod has counted is kept for others, but only for those that count the same nodes."""
    taints = [{"key": "x", "effect": "NoSchedule"}] if b1 == "tainted" else []
    nodes = [*NODES[:2], node("b1", labels={"zone": "b"}, taints=taints)]
    plain = asks(**policy)
    other = {**plain, "spec": {**plain["spec"], **spec}}
    alone = [answer(it, *nodes, pods=[old("1", "a1")]).feasible for it in (plain, other)]

    state = cluster(*nodes, pods=[old("1", "a1")])

    assert alone[0] != alone[1]
    assert [evaluate(state, it).feasible for it in (plain, other)] == alone


def test_match_label_keys_narrow_the_selector():
    hashed = {**APP, "hash": "new"}
    request = pod(labels=hashed, topologySpreadConstraints=[constraint(matchLabelKeys=["hash"])])
    assert len(judge(request, *NODES, pods=[old("1", "a1"), old("2", "a2")]).feasible) == 3


def test_an_empty_selector_counts_no_pods():
    pods = [old(str(n), "a1") for n in range(3)]
    assert len(judge(asks(labelSelector={}), *NODES, pods=pods).feasible) == 3


def test_uneven_is_busy_and_a_missing_label_is_impossible():
    alone = [node("a1", labels={"zone": "a"})]
    crowded = judge(asks(minDomains=2), *alone, pods=[old("1", "a1")])
    assert crowded.outcome is Outcome.BUSY
    assert judge(asks(), node("c")).outcome is Outcome.IMPOSSIBLE
