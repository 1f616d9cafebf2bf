"""What the doctor says of the queue in which servers wait."""

from types import SimpleNamespace

import pytest

from gpuspawner.cluster.kueue_objects import KueueObjects
from gpuspawner.doctor.checks import queues
from gpuspawner.gates.what_if import NOBODY
from gpuspawner.messages.administrators import Severity
from gpuspawner.policies.owner import Owner
from tests.unit.makers.kueue_worlds import flavor, inactive, known, pool, queue

QUOTA = {"nominalQuota": "2"}


def of(objects, configured="gpus", namespaces=False, owner=NOBODY):
    traits = {"kueue_queue": configured, "enable_user_namespaces": namespaces}
    spawner = SimpleNamespace(namespace="jhub", **traits)
    hub = SimpleNamespace(view=SimpleNamespace(queues=objects), spawner=spawner, owner=owner)
    return list(queues.check(hub))


NO_QUOTA = "Can't admit new workloads: references missing ResourceFlavor(s): t4."
DEFAULT = queue("default")
TEAM, STOPPED = pool("team-a", QUOTA), pool("team-a", QUOTA, stopPolicy="Hold")


@pytest.mark.parametrize(
    ("objects", "configured", "id_", "severity", "said"),
    [
        (
            (queue(), TEAM, flavor()), "gpus", "kueue-queue", Severity.FINE,
            "Servers wait in Kueue's LocalQueue gpus, for the quota of team-a.",
        ),
        (
            (queue("gpus"), TEAM), "gpu", "kueue-queue", Severity.ERROR,
            "the namespace jhub has none of this name (did you mean 'gpus'?)",
        ),
        ((queue(),), "gpus", "kueue-queue", Severity.ERROR, "gpus doesn't exist"),
        ((queue(), STOPPED), "gpus", "kueue-stopped", Severity.WARNING, "has a stopPolicy"),
        ((queue(), inactive(TEAM, NO_QUOTA)), "gpus", "kueue-stopped", Severity.WARNING, NO_QUOTA),
        ((DEFAULT, TEAM), None, "kueue-queue", Severity.FINE, "LocalQueue default"),
    ],
    ids=["sound", "misspelt", "without quota", "stopped", "not active", "the default queue"],
)  # fmt: skip
def test_a_queue_is_told_with_what_it_lacks(objects, configured, id_, severity, said):
    [finding] = of(known(*objects), configured)

    assert (finding.id, finding.severity) == (id_, severity)
    assert said in finding.text


@pytest.mark.parametrize(
    ("objects", "configured"),
    [(known(queue()), None), (known(), ""), (known(), None), (KueueObjects(), "gpus")],
    ids=["no default queue", "switched off", "no Kueue", "no rights"],
)
def test_nothing_is_said_where_no_queue_is_asked_for(objects, configured):
    assert of(objects, configured) == []


def test_a_queue_in_the_namespace_of_a_user_who_does_not_exist_is_not_missed():
    elsewhere = known(queue("other"))

    assert of(elsewhere, namespaces=True) == []
    [finding] = of(elsewhere, namespaces=True, owner=Owner("alice"))
    assert (finding.id, finding.severity) == ("kueue-queue", Severity.ERROR)
