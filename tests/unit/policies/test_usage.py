"""The shares of groups, kept up to date with every change of a pod."""

from __future__ import annotations

import json
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.kube.objects import AnyObject, Undecodable, decode
from gpuspawner.kube.servers import USER
from gpuspawner.offers.types import Accelerator
from gpuspawner.policies.charges import Charge, Meter, owner_names
from gpuspawner.policies.pod_owners import AsAnnotated
from gpuspawner.policies.policies import Limit, Measure, Per, Policy, What
from gpuspawner.policies.usage import Ledger, Share, Shares, Usage
from gpuspawner.scheduling import Rules
from tests.unit.makers.policy_pods import GPU, Plain, container, plain, server_pod
from tests.unit.makers.policy_worlds import GPUS, amounts, charge, key, members, owners, policies


@given(policies, st.lists(st.tuples(owners, st.none() | amounts, st.booleans()), max_size=25))
def test_a_share_that_follows_all_changes_equals_one_that_counts_anew(known, events):
    usage = Usage()
    shares = Shares(usage)
    for policy in known:
        shares.of(policy, "course", members(policy, "course"))
    for other, taken, is_pod in events:
        if taken is None:
            usage.remove(key(other)) if is_pod else usage.reserve(key(other), None)
        else:
            (usage.put if is_pod else usage.reserve)(key(other), charge(other, taken))

    for policy in known:
        kept = shares.of(policy, "course", members(policy, "course"))
        anew = Share(usage, policy, "course", members(policy, "course"))
        for limit in policy.limits:
            if limit.per is Per.GROUP:
                for besides in [("", ""), *(key(other) for other, _, _ in events)]:
                    found = kept.used(limit.measure, besides)
                    assert found == anew.used(limit.measure, besides)


def test_of_ever_new_policies_only_the_last_shares_are_followed(monkeypatch) -> None:
    monkeypatch.setattr("gpuspawner.policies.usage.MOST", 2)
    usage = Usage()
    shares = Shares(usage)
    made = [Policy(name, limits=(Limit(Per.GROUP, GPUS, 8),)) for name in "abc"]
    for policy in made:
        assert shares.of(policy, "course", frozenset({"ann"})).used(GPUS, ("", "")) == 0

    usage.put(("jhub", "jupyter-ann"), Charge(frozenset({"ann"}), "", {GPUS: 3}))

    assert len(shares._shares) == 2
    for policy in made:
        assert shares.of(policy, "course", frozenset({"ann"})).used(GPUS, ("", "")) == 3


def test_of_a_pod_and_a_start_of_its_name_a_share_counts_only_what_is_its_own() -> None:
    policy = Policy("all", limits=(Limit(Per.GROUP, GPUS, 8),))
    usage, ann, eve = Usage(), frozenset({"ann"}), frozenset({"eve"})
    usage.put(("jhub", "jupyter-ann"), Charge(eve, "", {GPUS: 3}))
    usage.reserve(("jhub", "jupyter-ann"), Charge(ann, "", {GPUS: 1}))

    assert Shares(usage).of(policy, "course", ann).used(GPUS, ("", "")) == 1


GPU_MEASURES, T4S = Measure(What.GPUS), Measure(What.GPUS, "t4")
METER = Meter(Rules.of_version("1.36"))
T4 = Accelerator("t4", "T4", GPU, node_selector={"gpu": "t4"})
ANN = owner_names("ann", "ann")
NOBODY_S = {"labels": {}, "annotations": {}}


class Book(Ledger):
    """A ledger that counts by the meter that a test has set last."""

    def __init__(self) -> None:
        self.meter = METER
        super().__init__(Usage(), lambda: self.meter, AsAnnotated("jhub"))

    def show(self, name: str = "a", **fields: Any) -> None:
        self.put(server_pod(name=name, **fields))

    def names(self) -> list[str]:
        return ["/".join(key) for key in self.keys("ServerPod")]

    def taken(self, measure: Measure = GPU_MEASURES) -> Any:
        found = self.usage.of_owner(ANN).values()
        return sum(charge.of(measure) for charges in found for charge in charges)


@pytest.fixture
def ledger() -> Book:
    return Book()


def seen(pod: Plain) -> AnyObject | Undecodable:
    """A pod as the watch reads it, even if it can't be read."""
    return decode("ServerPod", json.dumps(pod).encode())


def test_a_pod_counts_until_it_is_removed(ledger) -> None:
    ledger.show("a")
    ledger.show("b", server="b")
    assert ledger.taken() == 2

    ledger.remove("ServerPod", "jhub", "a")
    ledger.remove("ServerPod", "jhub", "never there")

    assert ledger.taken() == 1
    assert ledger.names() == ["jhub/b"]


def test_the_newest_version_of_a_pod_counts(ledger) -> None:
    ledger.show("a", containers=[container(gpu=4)])
    ledger.show("a", containers=[container(gpu=1)])

    assert ledger.taken() == 1


def test_a_pod_that_is_being_deleted_still_counts(ledger) -> None:
    ledger.show(metadata={"deletionTimestamp": "2026-11-23T12:00:00Z"})

    assert ledger.taken() == 1


def test_pods_of_two_namespaces_are_two_pods(ledger) -> None:
    for namespace in ("jhub-ann", "jhub-bob"):
        ledger.show("a", metadata={"namespace": namespace})

    assert ledger.taken() == 2
    assert sorted(ledger.names()) == ["jhub-ann/a", "jhub-bob/a"]


@pytest.mark.parametrize("amounts", [{"gpu": 1}, {"memory": "8Eii"}], ids=["known", "unknown"])
def test_a_pod_without_an_owner_is_nobody_s_server_but_is_not_forgotten(ledger, amounts) -> None:
    ledger.show("a", metadata=NOBODY_S, containers=[container(**amounts)])

    assert ("jhub", "a") not in ledger.usage.pods
    assert ledger.names() == ["jhub/a"]
    assert not ledger.unread


def test_a_pod_that_loses_its_owner_no_longer_counts(ledger) -> None:
    ledger.show("a")
    ledger.show("a", metadata=NOBODY_S)
    assert ledger.taken() == 0

    ledger.show("a", metadata={"labels": {USER: "ann"}, "annotations": {}})

    assert ledger.taken() == 1


def test_an_undecodable_pod_is_unread_until_it_can_be_read_or_is_gone(ledger) -> None:
    ledger.show("a")
    broken = seen(plain(name="a", containers="none"))
    assert isinstance(broken, Undecodable)

    ledger.put(broken)
    assert ledger.unread == {("jhub", "a")}
    assert ledger.names() == ["jhub/a"]

    ledger.show("a", containers=[container(gpu=3)])
    assert (ledger.unread, ledger.taken()) == (set(), 3)

    ledger.put(broken)
    ledger.remove("ServerPod", "jhub", "a")
    assert (ledger.unread, ledger.taken()) == (set(), 0)


def test_a_pod_whose_amounts_are_no_quantities_is_unread_too(ledger) -> None:
    ledger.show("a", containers=[container(memory="lots")])

    assert ledger.unread == {("jhub", "a")}
    assert not ledger.pods


def test_the_accelerators_of_the_first_pod_s_moment_count_until_they_change(ledger) -> None:
    ledger.show(nodeSelector={"gpu": "t4"})
    ledger.refresh()
    assert ledger.taken(T4S) == 0

    ledger.meter = replace(METER, accelerators=(T4,))
    ledger.refresh()
    assert (ledger.taken(), ledger.taken(T4S)) == (1, 1)

    ledger.show("b", nodeSelector={"gpu": "t4"})
    assert ledger.taken(T4S) == 2


def test_an_equal_meter_counts_nothing_again(ledger) -> None:
    ledger.show("a")
    # Counted again, it would take nothing.
    ledger.pods["jhub", "a"] = server_pod(name="a", containers=[])

    ledger.meter = replace(METER, weights=MappingProxyType({}))
    ledger.refresh()

    assert ledger.taken() == 1


def test_a_pod_that_newer_rules_cannot_read_becomes_unread_and_the_others_count(
    ledger,
) -> None:
    """Kubernetes 1.32 ignores the resources of whole pods; later versions read them."""
    ledger.meter = replace(
        METER, rules=msgspec.structs.replace(METER.rules, pod_level_resources=False)
    )
    huge = {"limits": {"memory": "1e40"}}
    ledger.show("a", resources=huge)
    ledger.show("b")
    assert ledger.taken() == 2

    ledger.meter = METER
    ledger.refresh()

    assert ledger.unread == {("jhub", "a")}
    assert ledger.taken() == 1


def test_the_reflector_s_marks_change_nothing(ledger) -> None:
    ledger.show()
    ledger.mark_unknown("ServerPod")
    ledger.mark_known("ServerPod")

    assert ledger.taken() == 1


events = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.sampled_from(["ann", "bob", ""]),
        st.none() | st.integers(0, 3),
        st.booleans(),
    ),
    max_size=30,
)


@given(events)
def test_a_count_from_changes_equals_a_count_from_a_list(changes) -> None:
    """None deletes a pod, and some pods can't be decoded."""
    changed, pods = Book(), {}
    for name, user, gpus, broken in changes:
        if gpus is None:
            pods.pop(name, None)
            changed.remove("ServerPod", "jhub", name)
        else:
            who = {} if user else NOBODY_S
            spec: Plain = {"containers": "none" if broken else [container(gpu=gpus)]}
            pods[name] = seen(plain(user, name=name, metadata=who, **spec))
            changed.put(pods[name])
    listed = Book()
    for pod in reversed(pods.values()):
        listed.put(pod)

    for owner in ("ann", "bob"):
        names = owner_names(owner, owner)
        assert changed.usage.of_owner(names) == listed.usage.of_owner(names)
    assert changed.unread == listed.unread
    assert set(changed.keys("ServerPod")) == set(listed.keys("ServerPod"))
