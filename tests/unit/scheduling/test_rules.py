import pytest

from gpuspawner.scheduling import Outcome, Rules, Why, evaluate, explain
from gpuspawner.scheduling.evaluate import fits_somewhere, fitting_nodes
from gpuspawner.scheduling.rules import DEFAULT_RULES, Resize
from tests.unit.makers.objects import affinity, cluster, node, pod, term


@pytest.mark.parametrize(
    ("version", "resize"),
    [
        ("v1.30.14", Resize.SPEC),
        ("1.32", Resize.SPEC),
        ("v1.33.0-gke.100", Resize.MAX_PER_CONTAINER),
        ("v1.36.2", Resize.MAX_PER_CONTAINER),
        ("v1.37.0-beta.0", Resize.MAX_OF_SUMS),
        ("v1.99", Resize.MAX_OF_SUMS),
    ],
)
def test_a_version_has_its_rules(version, resize):
    assert Rules.of_version(version).resize is resize


@pytest.mark.parametrize("version", ["", "newest", "v2", "1", "1.x", "v1.36 or so", "9" * 99])
def test_an_unparsable_version_gets_the_newest_rules(version):
    assert Rules.of_version(version) == Rules.of_version("1.37")


@pytest.mark.parametrize(
    ("version", "counts"),
    [("1.33", False), ("v1.33.5+k3s1", False), ("v1.33.6@sha256:0", True), ("1.33.13-gke.1", True)],
)
def test_the_patch_release_counts_where_it_is_known(version, counts):
    assert Rules.of_version(version).sidecar_ports is counts


def test_further_schedulers_can_use_the_default_filters():
    rules = Rules.of_version("1.36", schedulers=["user-scheduler"])
    assert rules.schedulers == {"default-scheduler", "user-scheduler"}
    assert DEFAULT_RULES.schedulers == {"default-scheduler"}


HOST = "kubernetes.io/hostname"
NAMESPACES = [
    {"metadata": {"name": "hub", "labels": {"kind": "user"}}},
    {"metadata": {"name": "system"}},
]
MISREAD, RIGHT = Rules.of_version("v1.36.2"), Rules.of_version("v1.37.2")


def excluding(operator="NotIn"):
    """Return a namespace selector that leaves out the namespace hub."""
    values = {"values": ["user"]} if operator == "NotIn" else {}
    return {"matchExpressions": [{"key": "kind", "operator": operator, **values}]}


def apart(selector, **fields):
    """Return a pod that keeps away from the app of the namespaces that are selected."""
    return pod(**affinity(away=[term({"app": "x"}, HOST, namespaceSelector=selector)]), **fields)


def near(selector):
    return pod(**affinity(near=[term({"app": "x"}, HOST, namespaceSelector=selector)]))


def other(namespace="hub", place="a", **fields):
    return pod(f"old-{namespace}", place, {"app": "x"}, namespace, **fields)


NODES = (node("a"), node("b", unschedulable=True))


def state(*pods, rules=MISREAD, nodes=NODES):
    return cluster(*nodes, pods=pods, namespaces=NAMESPACES, rules=rules)


@pytest.mark.parametrize("asks", [apart, near])
@pytest.mark.parametrize("operator", ["NotIn", "DoesNotExist"])
def test_where_a_scheduler_may_misread_a_namespace_selector_the_verdict_is_unknown(operator, asks):
    verdict = evaluate(state(other()), asks(excluding(operator)))

    assert verdict.outcome is Outcome.UNKNOWN
    assert [(it.why, it.detail) for it in verdict.unknown] == [(Why.RELEASE, "namespaceSelector")]


def test_a_verdict_that_is_the_same_for_each_reading_is_known():
    chosen, elsewhere = state(other("system")), state(other(place="b"))

    assert evaluate(chosen, apart(excluding())).outcome is Outcome.BUSY
    assert evaluate(chosen, near(excluding())).feasible == ("a",)
    assert evaluate(elsewhere, apart(excluding())).feasible == ("a",)


@pytest.mark.parametrize(
    "selector",
    [
        {},
        {"matchLabels": {"kind": "x"}, **excluding()},
        {
            "matchExpressions": [
                *excluding()["matchExpressions"],
                {"key": "kubernetes.io/metadata.name", "operator": "Exists"},
            ]
        },
    ],
)
def test_a_selector_that_a_namespace_without_labels_does_not_match_is_read_right(selector):
    found = state(other())
    right = evaluate(state(other(), rules=RIGHT), apart(selector))

    assert evaluate(found, apart(selector)).outcome is right.outcome


def test_the_anti_affinity_of_existing_pods_is_read_right():
    guard = apart(excluding(), name="guard", node="a")
    asks = pod(labels={"app": "x"})

    assert evaluate(state(guard), asks).feasible == ("a",)


def test_readings_that_differ_only_in_preemption_are_unknown():
    victim, lasting = other("system", priority=1), other(priority=100)
    asks = apart(excluding(), priority=50)

    right = evaluate(state(victim, lasting, rules=RIGHT), asks)
    assert right.outcome is Outcome.FITS_AFTER_PREEMPTION
    assert evaluate(state(victim, lasting), asks).outcome is Outcome.UNKNOWN


def test_all_questions_have_the_same_answer_about_a_pod_with_two_readings():
    asks = apart(excluding())
    doubtful, certain = state(other()), state(other(place="b"))

    assert fits_somewhere(certain, asks)
    assert list(fitting_nodes(certain, asks, ("a",))) == []
    assert not fits_somewhere(doubtful, asks)


def test_a_pod_fits_on_the_nodes_where_it_fits_by_each_reading():
    found, asks = state(other(), nodes=[node("a"), node("b")]), apart(excluding())

    assert (evaluate(found, asks).outcome, evaluate(found, asks).feasible) == (Outcome.FITS, ("b",))
    assert set(explain(found, asks).failures) == {"a"}
    assert list(fitting_nodes(found, asks)) == ["b"]
    assert fits_somewhere(found, asks)


def test_a_pod_that_fits_on_other_nodes_by_each_reading_is_unknown():
    """By one, b has the pods to be near; by the other, only a lacks those to keep away from."""
    terms = {
        where: [term({"app": app}, HOST, namespaceSelector=excluding())]
        for where, app in (("near", "y"), ("away", "x"))
    }
    pods = [
        pod("y", "b", {"app": "y"}, "system"),
        pod("y", "a", {"app": "y"}, "hub"),
        pod("x", "b", {"app": "x"}, "hub"),
    ]
    found, asks = state(*pods, nodes=[node("a"), node("b")]), pod(**affinity(**terms))
    assert evaluate(state(*pods, nodes=[node("a"), node("b")], rules=RIGHT), asks).feasible == (
        "b",
    )

    assert evaluate(found, asks).outcome is Outcome.UNKNOWN
    assert not fits_somewhere(found, asks)


def tainted(value):
    return node("a", taints=[{"key": "sla", "value": value, "effect": "NoSchedule"}])


def tolerating(operator, value="900"):
    return pod(tolerations=[{"key": "sla", "operator": operator, "value": value}])


@pytest.mark.parametrize(
    ("operator", "value", "is_open"),
    [
        ("Gt", "950", True),
        ("Gt", "900", False),
        ("Gt", "-1", False),
        ("Lt", "899", True),
        ("Lt", "950", False),
        ("Lt", "high", False),
    ],
)
def test_only_a_comparison_that_decides_makes_the_verdict_unknown(operator, value, is_open):
    verdict = evaluate(state(nodes=[tainted(value)]), tolerating(operator))

    assert verdict.outcome is (Outcome.UNKNOWN if is_open else Outcome.IMPOSSIBLE)


def test_a_comparison_that_only_opens_more_nodes_leaves_a_fit_certain():
    found = state(nodes=[tainted("950"), node("b")])

    assert evaluate(found, tolerating("Gt")).feasible == ("b",)
    assert list(fitting_nodes(found, tolerating("Gt"))) == ["b"]


def test_a_comparison_that_does_not_decide_changes_nothing():
    found = state(nodes=[tainted("950"), node("b")])
    tolerates_all = pod(tolerations=[{"operator": "Exists"}, {"key": "sla", "operator": "Gt"}])

    assert evaluate(found, tolerates_all).feasible == ("a", "b")
