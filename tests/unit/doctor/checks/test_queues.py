"""What the doctor says of the queue in which servers wait."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from gpuspawner.cluster.kueue_objects import KueueObjects
from gpuspawner.doctor.checks import queues
from gpuspawner.gates.what_if import NOBODY
from gpuspawner.messages.administrators import Finding, Severity
from gpuspawner.policies.owner import Owner
from tests.unit.makers.kueue_worlds import Plain, flavor, inactive, known, pool, queue

QUOTA = {"nominalQuota": "2"}


def found(*objects: Plain, configured: str | None = "gpus") -> list[tuple[str, Severity]]:
    return [(it.id, it.severity) for it in said(*objects, configured=configured)]


def said(*objects: Plain, configured: str | None = "gpus") -> list[Finding]:
    return of(known(*objects), configured)


def of(
    objects: KueueObjects,
    configured: str | None = "gpus",
    namespaces: bool = False,
    owner: Owner = NOBODY,
) -> list[Finding]:
    traits = {"kueue_queue": configured, "enable_user_namespaces": namespaces}
    spawner = SimpleNamespace(namespace="jhub", **traits)
    hub: Any = SimpleNamespace(view=SimpleNamespace(queues=objects), spawner=spawner, owner=owner)
    return list(queues.check(hub))


def test_a_queue_with_its_quota_is_fine() -> None:
    [finding] = said(queue(), pool("team-a", QUOTA), flavor())

    assert (finding.id, finding.severity) == ("kueue-queue", Severity.FINE)
    assert finding.text == "Servers wait in Kueue's LocalQueue gpus, for the quota of team-a."


def test_a_queue_that_does_not_exist_is_an_error_with_the_nearest_name() -> None:
    [finding] = said(queue("gpus"), pool("team-a", QUOTA), configured="gpu")

    assert (finding.id, finding.severity) == ("kueue-queue", Severity.ERROR)
    assert "the namespace jhub has none of this name (did you mean 'gpus'?)" in finding.text


def test_a_queue_without_quota_is_an_error() -> None:
    assert found(queue()) == [("kueue-queue", Severity.ERROR)]


def test_a_stopped_queue_is_a_warning() -> None:
    stopped = pool("team-a", QUOTA, stopPolicy="Hold")
    assert found(queue(), stopped) == [("kueue-stopped", Severity.WARNING)]


def test_what_kueue_says_of_a_queue_that_isnt_active_is_quoted() -> None:
    lacks = "Can't admit new workloads: references missing ResourceFlavor(s): t4."
    [finding] = said(queue(), inactive(pool("team-a", QUOTA), lacks))

    assert (finding.id, finding.severity) == ("kueue-stopped", Severity.WARNING)
    assert lacks in finding.text


def test_the_default_queue_counts_only_if_it_exists() -> None:
    assert found(queue(), configured=None) == []
    own = queue("default"), pool("team-a", QUOTA)
    assert found(*own, configured=None) == [("kueue-queue", Severity.FINE)]


def test_nothing_is_said_without_kueue_or_without_its_rights() -> None:
    assert found(configured="") == []
    assert found(configured=None) == []
    assert of(KueueObjects()) == []


def test_a_queue_in_the_namespace_of_a_user_who_does_not_exist_is_not_missed() -> None:
    elsewhere = known(queue("other"))

    assert of(elsewhere, namespaces=True) == []
    [finding] = of(elsewhere, namespaces=True, owner=Owner("alice"))
    assert (finding.id, finding.severity) == ("kueue-queue", Severity.ERROR)
