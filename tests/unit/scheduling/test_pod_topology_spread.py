import pytest

from gpuspawner.scheduling import Outcome, evaluate
from gpuspawner.scheduling.failures import NoTopology, Uneven
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


def test_a_pod_fits_in_the_domain_with_fewer_pods():
    verdict = judge(asks(), *NODES, pods=[old("1", "a1"), old("2", "a2")])
    assert verdict.feasible == ("b1",)
    assert verdict.failures["a1"] == (Uneven(),)


def test_a_node_without_the_topology_label_is_excluded():
    bare = node("c")
    verdict = judge(asks(), *NODES, bare)
    assert verdict.failures["c"] == (NoTopology(),)


def test_of_two_like_nodes_the_one_that_the_pod_excludes_does_not_count():
    nodes = [node(name, labels={"zone": name[0]}) for name in ("a1", "a2", "b1")]
    for plain in nodes:
        del plain["metadata"]["labels"]["kubernetes.io/hostname"]
    other = {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["a2"]}]}
    request = {**asks(), "spec": {**asks()["spec"], **required(other)}}
    verdict = judge(request, *nodes, pods=[old("1", "a2"), old("2", "a2")])
    assert verdict.feasible == ("a1", "b1")


def test_a_node_that_lacks_the_label_of_one_constraint_counts_for_none():
    both = [constraint(), constraint(topologyKey="rack", maxSkew=9)]
    request = pod(labels=APP, topologySpreadConstraints=both)
    racked = [node("a", labels={"zone": "a", "rack": "1"}), node("b", labels={"zone": "b"})]
    assert judge(request, *racked, pods=[old("1", "a")]).feasible == ("a",)


@pytest.mark.parametrize(
    "other",
    [
        {"namespace": "elsewhere"},
        {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
    ],
)
def test_pods_in_other_namespaces_and_terminating_pods_do_not_count(other):
    pods = [old("1", "a1", **other), old("2", "a2", **other)]
    assert judge(asks(), *NODES, pods=pods).feasible == ("a1", "a2", "b1")


def test_with_fewer_domains_than_min_domains_the_minimum_is_zero():
    pods = [old("1", "a1"), old("2", "b1")]
    assert judge(asks(), *NODES, pods=pods).feasible
    assert not judge(asks(minDomains=3), *NODES, pods=pods).feasible


def test_nodes_that_the_pod_does_not_select_count_only_with_the_policy_ignore():
    pods = [old("1", "a1")]
    chosen = {"nodeSelector": {"zone": "a"}}
    for policy, fits in (("Honor", True), ("Ignore", False)):
        request = pod(
            labels=APP,
            topologySpreadConstraints=[constraint(nodeAffinityPolicy=policy)],
            **chosen,
        )
        assert bool(judge(request, *NODES, pods=pods).feasible) is fits


def test_tainted_nodes_count_unless_the_taints_policy_is_honor():
    tainted = node("b1", labels={"zone": "b"}, taints=[{"key": "x", "effect": "NoSchedule"}])
    nodes = [*NODES[:2], tainted]
    assert not judge(asks(), *nodes, pods=[old("1", "a1")]).feasible
    assert judge(asks(nodeTaintsPolicy="Honor"), *nodes, pods=[old("1", "a1")]).feasible


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
    assert judge(request, *NODES, pods=[old("1", "a1"), old("2", "a2")]).feasible == (
        "a1",
        "a2",
        "b1",
    )


def test_an_empty_selector_counts_no_pods():
    pods = [old(str(n), "a1") for n in range(3)]
    assert judge(asks(labelSelector={}), *NODES, pods=pods).feasible == ("a1", "a2", "b1")


def test_a_schedule_anyway_constraint_excludes_no_node():
    pods = [old(str(n), "a1") for n in range(3)]
    assert judge(asks(whenUnsatisfiable="ScheduleAnyway"), *NODES, pods=pods).feasible


def test_uneven_is_busy_and_a_missing_label_is_impossible():
    alone = [node("a1", labels={"zone": "a"})]
    crowded = judge(asks(minDomains=2), *alone, pods=[old("1", "a1")])
    assert crowded.outcome is Outcome.BUSY
    assert judge(asks(), node("c")).outcome is Outcome.IMPOSSIBLE
