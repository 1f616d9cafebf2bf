"""What hooks and admission do to pods after the first gates, learned from earlier pods."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.preflight.decision import Reason
from gpuspawner.preflight.learned_hooks import Later, Placements
from gpuspawner.preflight.preflight import Preflight
from tests.unit.makers.worlds import StillView, is_unknown, node, pod, proposal, refused

pytestmark = pytest.mark.usefixtures("clock")

TAINT = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}
TOLERATION = {"key": "dedicated", "operator": "Exists"}
KIND = ("", "a100")

names = st.sampled_from("abc")
tolerations = st.lists(
    st.builds(lambda key: {"key": key, "operator": "Exists"}, names), unique_by=str
)
selectors = st.dictionaries(names, names)
specs = st.fixed_dictionaries(
    {},
    optional={
        "tolerations": tolerations,
        "nodeSelector": selectors,
        "affinity": st.sampled_from([{}, {"nodeAffinity": {}}]),
        "schedulerName": names,
    },
)


def placed(pod):
    """Return what a pod's spec says of where it may go."""
    fields = ("tolerations", "nodeSelector", "affinity", "schedulerName")
    return [pod["spec"].get(name) or None for name in fields]


CONTAINERS = {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]}


@given(specs, specs)
def test_what_was_seen_of_a_pod_makes_the_same_of_the_next_one(before, after):
    later = Later(Placements(), has_own_code=True)
    made, sent = {"spec": {**before, **CONTAINERS}}, {"spec": {**after, **CONTAINERS}}

    later.learn(KIND, made, sent, None)

    expected = later.expected(KIND, made)
    assert placed(expected) == placed(sent)
    assert not later.is_open(KIND, made, None)
    assert not later.is_open(KIND, expected, None)
    later.learn(KIND, expected, sent, None)
    assert later.expected(KIND, made) == expected


def test_what_was_seen_says_nothing_of_pods_that_differ():
    plain, changed = pod("a"), pod("a", tolerations=[TOLERATION])
    later = Later(Placements(), has_own_code=True)
    assert later.is_open(KIND, plain, None)

    later.learn(KIND, plain, changed, None)

    assert not later.is_open(KIND, plain, None)
    assert later.expected(KIND, plain)["spec"]["tolerations"] == [TOLERATION]
    others = pod("a", gpus=2), pod("a", nodeSelector={"gpu": "t4"})
    for other in others:
        assert later.is_open(KIND, other, None)
        assert later.expected(KIND, other) == other
    assert later.is_open(("", "t4"), plain, None)


def test_code_that_changes_its_mind_is_not_known_any_more():
    plain, changed = pod("a"), pod("a", tolerations=[TOLERATION])
    later = Later(Placements(), has_own_code=True)
    later.learn(KIND, plain, changed, None)

    later.learn(KIND, later.expected(KIND, plain), pod("a", nodeSelector={"for": "bob"}), None)

    assert later.is_open(KIND, plain, None)


def test_code_that_changes_what_a_pod_requests_stays_open():
    later = Later(Placements(), has_own_code=True)

    later.learn(KIND, pod("a", gpus=2), pod("a", gpus=1), None)

    assert later.is_open(KIND, pod("a", gpus=2), None)


def test_a_hub_without_code_of_its_own_expects_nothing():
    later = Later(Placements())

    later.learn(KIND, pod("a"), pod("a", tolerations=[TOLERATION]), None)

    assert not later.is_open(KIND, pod("a"), None)
    assert later.expected(KIND, pod("a")) == pod("a")


def test_nothing_is_learned_of_a_pod_that_could_not_be_made():
    later = Later(Placements(), has_own_code=True)

    later.learn(KIND, {"spec": None}, pod("a"), None)

    assert later.is_open(KIND, {"spec": None}, None)
    assert later.is_open(KIND, pod("a"), None)


def test_code_that_may_treat_users_differently_is_known_for_each_user_alone_and_not_for_long(
    monkeypatch,
):
    placements, now = Placements(), [1000.0]
    monkeypatch.setattr("gpuspawner.preflight.learned_hooks.time.monotonic", lambda: now[0])
    ann, bob, all_ = (Later(placements, has_own_code=True, server=it) for it in ("ann", "bob", ""))

    for later in (ann, all_):
        later.learn(KIND, pod("a"), pod("a", tolerations=[TOLERATION]), None)

    assert not ann.is_open(KIND, pod("a"), None)
    assert bob.is_open(KIND, pod("a"), None)
    assert bob.expected(KIND, pod("a")) == pod("a")
    now[0] += 601
    assert ann.is_open(KIND, pod("a"), None)
    assert not all_.is_open(KIND, pod("a"), None)


def test_only_so_many_pods_are_remembered(monkeypatch):
    monkeypatch.setattr("gpuspawner.preflight.learned_hooks._MOST", 3)
    placements = Placements()
    all_four = [Later(placements, has_own_code=True, server=it) for it in "abcd"]

    for later in all_four:
        later.learn(KIND, pod("a"), pod("a"), None)

    assert [it.is_open(KIND, pod("a"), None) for it in all_four] == [True, False, False, False]


TAINTED = node("tainted", 1, taints=[TAINT])
ELSEWHERE = {**node("x", 1), "metadata": {"name": "elsewhere", "labels": {"gpu": "other"}}}


@pytest.mark.parametrize("nodes", [[TAINTED], [ELSEWHERE]], ids=["taint", "label"])
def test_a_no_that_the_hub_s_own_code_could_lift_is_unknown(nodes):
    decider = Preflight(StillView(*(("Node", it) for it in nodes))).decider
    what = proposal("a")

    assert refused(decider.check(what)) is Reason.IMPOSSIBLE
    assert is_unknown(decider.check(replace(what, is_open=True)))


def test_a_server_is_not_refused_for_full_nodes_that_the_hub_s_own_code_may_not_use():
    full = ("Node", node("n", 1)), ("Pod", pod("x", on="n"))
    decider = Preflight(StillView(*full, ("Node", ELSEWHERE))).decider

    assert refused(decider.check(proposal("a"))) is Reason.BUSY
    assert is_unknown(decider.check(replace(proposal("a"), is_open=True)))


def test_a_no_for_lack_of_gpus_is_a_no_whatever_the_hub_s_own_code_does():
    decider = Preflight(StillView(("Node", TAINTED), ("Pod", pod("x", on="tainted")))).decider

    assert refused(decider.check(replace(proposal("a"), is_open=True)))
