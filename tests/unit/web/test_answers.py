"""The endpoints' answers."""

import pytest

from gpuspawner.gates.preview import preview
from gpuspawner.preflight.decision import Refuse, Start, Wait
from gpuspawner.scheduling import evaluate
from gpuspawner.web.answers import states
from tests.unit.makers.hubs import A100, TAINT, TOLERATION
from tests.unit.makers.kueue_worlds import known, pool, queue, workload
from tests.unit.makers.worlds import labelled, node, pod

SMALL = ("Node", labelled(node("a", 1), {"gpu": "a100"}))
TAINTED = ("Node", labelled(node("b", 2, taints=[TAINT]), {"gpu": "a100"}))


def tolerating(_, pod):
    """What an administrator's hook does, nobody knows before the first start."""
    pod.spec.tolerations = [*(pod.spec.tolerations or ()), TOLERATION]
    return pod


@pytest.mark.parametrize(
    ("pool", "traits", "decision", "known"),
    [
        ({}, {}, Refuse, {"free": [1], "whole": [1]}),
        ({"scale_up": {"max_nodes": 4, "minutes": 5}}, {}, Wait, {"free": [1], "whole": None}),
        ({}, {"modify_pod_hook": tolerating}, Start, None),
    ],
    ids=["none", "one-can-come", "a-hook-may-allow-one"],
)
async def test_no_choice_is_ruled_out_that_a_larger_node_may_hold(
    pool, traits, decision, known, hub_with
):
    """The smallest server would start now, so the state is free."""
    hub, offered = hub_with(SMALL, TAINTED), {"a100": {**A100, **pool}}
    spawner = hub.spawner(accelerators=offered, autoscaling="none", **traits)
    accelerators = spawner.gpuspawner_gates.sources.accelerators

    found, _offers = await preview(accelerators, {"accelerator": "a100", "gpus": 2}, "")
    row = (await states(accelerators))["accelerators"][0]

    machines = row["machines"] and {
        name: fits and [it["gpus"] for it in fits] for name, fits in row["machines"].items()
    }
    assert isinstance(found, decision)
    assert (row["state"], machines) == ("free", known)


async def test_states_judge_no_pods_that_wait_as_long_as_there_is_room(hub_with, monkeypatch):
    """A batch system may have thousands, and each change of the cluster makes new states."""
    pending = ("Pod", pod("batch", 2, nodeSelector={"gpu": "a100"}))
    hub, judged = hub_with(SMALL, pending), []
    monkeypatch.setattr(
        "gpuspawner.scheduling.verdicts.evaluate",
        lambda state, asked, **more: judged.append(asked) or evaluate(state, asked, **more),
    )
    spawner = hub.spawner(accelerators={"a100": A100})

    row = (await states(spawner.gpuspawner_gates.sources.accelerators))["accelerators"][0]

    assert row["state"] == "free"
    assert "batch" not in {it.metadata.name for it in judged}


async def test_what_a_queue_says_is_told_and_its_version_changes_only_with_decisions(hub_with):
    hub = hub_with(SMALL)
    spawner = hub.spawner(
        accelerators={"a100": A100}, autoscaling="none", kueue_queue="gpus", namespace="jhub"
    )
    team, decides = pool("team-a", {"nominalQuota": "2"}), "The queue gpus decides when your"

    async def told(*objects):
        known(*objects, store=hub.view.queues)
        found = (await states(spawner.gpuspawner_gates.sources.accelerators))["queue"]
        assert found["name"] == "gpus"
        return found["message"], found["version"]

    nobody, version = await told(queue(), team)
    assert nobody.startswith(decides)
    assert nobody.endswith("Nobody is waiting there right now.")
    one, still = await told(workload("w"))
    assert (one, still) == (f"{decides} server starts. 1 is waiting there already.", version)
    stopped, other = await told(queue(stopPolicy="Hold"))
    assert stopped == "The queue gpus is stopped right now."
    assert other != version
    changed = {**team, "metadata": {**team["metadata"], "generation": 2}}
    assert (await told(queue(), changed))[1] not in (version, other)


async def test_without_a_queue_none_is_told(hub_with):
    spawner = hub_with(SMALL).spawner(accelerators={"a100": A100}, autoscaling="none")

    assert (await states(spawner.gpuspawner_gates.sources.accelerators))["queue"] is None
