"""The usage follows the pods that a watch reads; what can't be read is known to be unknown."""

from __future__ import annotations

import json
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.kube.objects import AnyObject, Undecodable, decode
from gpuspawner.kube.servers import USER
from gpuspawner.offers import Accelerator
from gpuspawner.policy.charges import Meter, owner_names
from gpuspawner.policy.ledger import Ledger
from gpuspawner.policy.policies import Measure, What
from gpuspawner.policy.usage import Usage
from gpuspawner.scheduling import Rules
from tests.unit.policy.pods import GPU, Plain, container, plain, server_pod

GPUS, T4S = Measure(What.GPUS), Measure(What.GPUS, "t4")
METER = Meter(Rules.of_version("1.36"))
T4 = Accelerator("t4", "T4", GPU, node_selector={"gpu": "t4"})
ANN = owner_names("ann", "ann")


class Meters:
    """Returns the meter that the test has set last."""

    def __init__(self) -> None:
        self.meter = METER

    def __call__(self) -> Meter:
        return self.meter


def new(meters: Meters | None = None) -> Ledger:
    return Ledger(Usage(), meters or Meters())


def taken(ledger: Ledger, measure: Measure = GPUS, owners: frozenset[str] = ANN) -> Any:
    found = ledger.usage.of_owner(owners).values()
    return sum(charge.of(measure) for charges in found for charge in charges)


def seen(pod: Plain) -> AnyObject | Undecodable:
    """A pod as the watch reads it, even if it can't be read."""
    return decode("ServerPod", json.dumps(pod).encode())


def test_a_pod_counts_until_it_is_removed() -> None:
    ledger = new()
    ledger.put(server_pod(name="a"))
    ledger.put(server_pod(name="b", server="b"))
    assert taken(ledger) == 2

    ledger.remove("ServerPod", "jhub", "a")
    ledger.remove("ServerPod", "jhub", "never there")

    assert taken(ledger) == 1
    assert list(ledger.keys("ServerPod")) == [("jhub", "b")]


def test_the_newest_version_of_a_pod_counts() -> None:
    ledger = new()
    ledger.put(server_pod(name="a", containers=[container(gpu=4)]))
    ledger.put(server_pod(name="a", containers=[container(gpu=1)]))

    assert taken(ledger) == 1


def test_a_pod_that_is_being_deleted_still_counts() -> None:
    ledger = new()
    ledger.put(server_pod(metadata={"deletionTimestamp": "2026-11-23T12:00:00Z"}))

    assert taken(ledger) == 1


def test_pods_of_two_namespaces_are_two_pods() -> None:
    ledger = new()
    for namespace in ("jhub-ann", "jhub-bob"):
        ledger.put(server_pod(name="a", metadata={"namespace": namespace}))

    assert taken(ledger) == 2
    assert sorted(ledger.keys("ServerPod")) == [("jhub-ann", "a"), ("jhub-bob", "a")]


def test_a_pod_without_an_owner_stops_no_count_even_if_nobody_can_tell_what_it_takes() -> None:
    ledger = new()
    nobody_s = {"labels": {}, "annotations": {}}
    ledger.put(server_pod(name="a", metadata=nobody_s, containers=[container(memory="8Eii")]))

    assert not ledger.unread
    assert list(ledger.keys("ServerPod")) == [("jhub", "a")]


def test_a_pod_without_an_owner_is_nobody_s_server_but_is_not_forgotten() -> None:
    ledger = new()
    ledger.put(server_pod(name="a", metadata={"labels": {}, "annotations": {}}))

    assert not ledger.usage.shows(("jhub", "a"))
    assert list(ledger.keys("ServerPod")) == [("jhub", "a")]
    assert not ledger.unread


def test_a_pod_that_loses_its_owner_no_longer_counts() -> None:
    ledger = new()
    ledger.put(server_pod(name="a"))
    ledger.put(server_pod(name="a", metadata={"labels": {}, "annotations": {}}))
    assert taken(ledger) == 0

    ledger.put(server_pod(name="a", metadata={"labels": {USER: "ann"}, "annotations": {}}))

    assert taken(ledger) == 1


def test_an_undecodable_pod_is_unread_until_it_can_be_read_or_is_gone() -> None:
    ledger = new()
    ledger.put(server_pod(name="a"))
    broken = seen(plain(name="a", containers="none"))
    assert isinstance(broken, Undecodable)

    ledger.put(broken)
    assert ledger.unread == {("jhub", "a")}
    assert list(ledger.keys("ServerPod")) == [("jhub", "a")]

    ledger.put(server_pod(name="a", containers=[container(gpu=3)]))
    assert (ledger.unread, taken(ledger)) == (set(), 3)

    ledger.put(broken)
    ledger.remove("ServerPod", "jhub", "a")
    assert (ledger.unread, taken(ledger)) == (set(), 0)


def test_a_pod_whose_amounts_are_no_quantities_is_unread_too() -> None:
    ledger = new()
    ledger.put(server_pod(name="a", containers=[container(memory="lots")]))

    assert ledger.unread == {("jhub", "a")}
    assert not ledger.pods


def test_the_accelerators_of_the_first_pod_s_moment_count_until_they_change() -> None:
    meters = Meters()
    ledger = new(meters)
    ledger.put(server_pod(nodeSelector={"gpu": "t4"}))
    ledger.refresh()
    assert taken(ledger, T4S) == 0

    meters.meter = replace(METER, accelerators=(T4,))
    ledger.refresh()
    assert (taken(ledger), taken(ledger, T4S)) == (1, 1)

    ledger.put(server_pod(name="b", nodeSelector={"gpu": "t4"}))
    assert taken(ledger, T4S) == 2


def test_an_equal_meter_counts_nothing_again() -> None:
    meters = Meters()
    ledger = new(meters)
    ledger.put(server_pod(name="a"))
    # Counted again, it would take nothing.
    ledger.pods["jhub", "a"] = server_pod(name="a", containers=[])

    meters.meter = replace(METER, weights=MappingProxyType({}))
    ledger.refresh()

    assert taken(ledger) == 1


def test_a_pod_that_newer_rules_cannot_read_becomes_unread_and_the_others_count() -> None:
    """Kubernetes 1.32 ignores the resources of whole pods; later versions read them."""
    meters = Meters()
    meters.meter = replace(
        METER, rules=msgspec.structs.replace(METER.rules, pod_level_resources=False)
    )
    ledger = new(meters)
    huge = {"limits": {"memory": "1e40"}}
    ledger.put(server_pod(name="a", resources=huge))
    ledger.put(server_pod(name="b"))
    assert taken(ledger) == 2

    meters.meter = METER
    ledger.refresh()

    assert ledger.unread == {("jhub", "a")}
    assert taken(ledger) == 1


def test_the_reflector_s_marks_change_nothing() -> None:
    ledger = new()
    ledger.put(server_pod())
    ledger.mark_unknown("ServerPod")
    ledger.mark_known("ServerPod")

    assert taken(ledger) == 1


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
    changed, pods = new(), {}
    for name, user, gpus, broken in changes:
        if gpus is None:
            pods.pop(name, None)
            changed.remove("ServerPod", "jhub", name)
        else:
            who = {} if user else {"labels": {}, "annotations": {}}
            spec: Plain = {"containers": "none" if broken else [container(gpu=gpus)]}
            pods[name] = seen(plain(user, name=name, metadata=who, **spec))
            changed.put(pods[name])
    listed = new()
    for pod in reversed(pods.values()):
        listed.put(pod)

    for owner in ("ann", "bob"):
        names = owner_names(owner, owner)
        assert changed.usage.of_owner(names) == listed.usage.of_owner(names)
    assert changed.unread == listed.unread
    assert set(changed.keys("ServerPod")) == set(listed.keys("ServerPod"))
