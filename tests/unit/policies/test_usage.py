"""The shares of groups, kept up to date with every change of a pod."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.policies.charges import Charge
from gpuspawner.policies.policies import Limit, Per, Policy
from gpuspawner.policies.usage import Share, Shares, Usage
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
