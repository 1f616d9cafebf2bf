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
from gpuspawner.offers.types import Accelerator
from gpuspawner.policies.charges import Charge, owner_names
from gpuspawner.policies.pod_owners import AsAnnotated
from gpuspawner.policies.policies import Limit, Measure, Per, Policy
from gpuspawner.policies.usage import Ledger, Share, Usage
from tests.unit.makers.policy_accounts import METER
from tests.unit.makers.policy_pods import GPU, Plain, container, plain, server_pod
from tests.unit.makers.policy_worlds import GPUS, T4S, change, changes, key, members, policies


@given(policies, changes)
def test_a_share_that_follows_all_changes_equals_one_that_counts_anew(known, events):
    usage = Usage()
    for policy in known:
        usage.share(policy, "course", members(policy, "course"))
    change(usage, events)

    for policy in known:
        kept = usage.share(policy, "course", members(policy, "course"))
        anew = Share(usage, policy, "course", members(policy, "course"))
        for limit in policy.limits:
            if limit.per is Per.GROUP:
                for besides in [("", ""), *(key(other) for other, _, _ in events)]:
                    found = kept.used(limit.measure, besides)
                    assert found == anew.used(limit.measure, besides)


def test_of_ever_new_policies_only_the_last_shares_are_followed(monkeypatch) -> None:
    monkeypatch.setattr("gpuspawner.policies.usage.MOST", 2)
    usage = Usage()
    made = [Policy(name, limits=(Limit(Per.GROUP, GPUS, 8),)) for name in "abc"]
    for policy in made:
        assert usage.share(policy, "course", frozenset({"ann"})).used(GPUS, ("", "")) == 0

    usage.put(("jhub", "jupyter-ann"), Charge(frozenset({"ann"}), "", {GPUS: 3}))

    assert len(usage._shares) == 2
    for policy in made:
        assert usage.share(policy, "course", frozenset({"ann"})).used(GPUS, ("", "")) == 3


def test_of_a_pod_and_a_start_of_its_name_a_share_counts_only_what_is_its_own() -> None:
    policy = Policy("all", limits=(Limit(Per.GROUP, GPUS, 8),))
    usage, ann, eve = Usage(), frozenset({"ann"}), frozenset({"eve"})
    usage.put(("jhub", "jupyter-ann"), Charge(eve, "", {GPUS: 3}))
    usage.reserve(("jhub", "jupyter-ann"), Charge(ann, "", {GPUS: 1}))

    assert usage.share(policy, "course", ann).used(GPUS, ("", "")) == 1


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

    def taken(self, measure: Measure = GPUS) -> Any:
        found = self.usage.of_owner(ANN).values()
        return sum(charge.of(measure) for charges in found for charge in charges)


@pytest.fixture
def ledger() -> Book:
    return Book()


def seen(pod: Plain) -> AnyObject | Undecodable:
    """A pod as the watch reads it, even if it can't be read."""
    return decode("ServerPod", json.dumps(pod).encode())


def test_a_pod_that_is_being_deleted_still_counts(ledger) -> None:
    ledger.show(metadata={"deletionTimestamp": "2026-11-23T12:00:00Z"})

    assert ledger.taken() == 1


@pytest.mark.parametrize("amounts", [{"gpu": 1}, {"memory": "8Eii"}], ids=["known", "unknown"])
def test_a_pod_without_an_owner_is_nobody_s_server_but_is_not_forgotten(ledger, amounts) -> None:
    ledger.show("a", metadata=NOBODY_S, containers=[container(**amounts)])

    assert ("jhub", "a") not in ledger.usage.pods
    assert ledger.names() == ["jhub/a"]
    assert not ledger.unread


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
def test_a_count_from_watched_changes_equals_a_count_from_a_list(watched) -> None:
    """None deletes a pod, and some pods can't be decoded."""
    changed, pods = Book(), {}
    for name, user, gpus, broken in watched:
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
    unread = {name for name, pod in pods.items() if isinstance(pod, Undecodable)}
    assert {name for _, name in changed.unread} == unread
    assert {name for _, name in changed.keys("ServerPod")} == pods.keys()
