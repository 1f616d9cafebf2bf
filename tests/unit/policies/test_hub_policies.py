"""What policies grant is judged by the pod that is sent, and written on it."""

import json
import logging
from typing import Any

import pytest

from gpuspawner.compat import pods
from gpuspawner.kube.objects import convert
from gpuspawner.kube.servers import GRANT
from gpuspawner.start.refusal import Refusal
from tests.unit.makers.courses import T4, begin, refused, sends
from tests.unit.makers.policy_pods import GPU
from tests.unit.makers.worlds import labelled, node

FOUND = {"nvidia.com/gpu.product": "Tesla-T4"}


async def granted(spawner: Any, **options: Any) -> dict[str, Any]:
    """Begin a start; return what its pod says of the grant."""
    await begin(spawner, **options)
    pod = await spawner.get_pod_manifest()
    said: dict[str, Any] = json.loads(pod.metadata.annotations[GRANT])
    return said


async def test_the_pod_says_by_which_policies_and_for_which_groups_it_was_granted(course) -> None:
    policies = {
        "course": {"groups": ["course"], "gpus_per_group": 8, "lifetime": "4h"},
        "size": {"gpus_per_server": 4, "lifetime": "8h"},
        "others": {"users": ["bob"], "gpus_per_server": 1},
    }

    assert await granted(course.spawner(policies), gpus=2) == {
        "accelerator": "t4",
        "policies": ["course", "size"],
        "groups": ["course"],
        "lifetime": 4 * 3600,
    }


async def test_a_shorter_deadline_of_the_administrator_is_the_lifetime_that_is_told(course) -> None:
    spawner = course.spawner(
        {"course": {"lifetime": "4h"}}, extra_pod_config={"activeDeadlineSeconds": 600}
    )

    assert (await granted(spawner))["lifetime"] == 600

    pod = await spawner.get_pod_manifest()
    assert pod.spec.active_deadline_seconds == 600
    told = {it["name"]: it["value"] for it in pods.plain(pod.spec.containers[0].env)}
    assert told["GPUSPAWNER_LIFETIME_SECONDS"] == "600"
    assert "ends 10 minutes after it starts" in spawner.gpuspawner_gates.attempt.news()[0].text


@pytest.mark.parametrize("policy", [{"lifetime": "4h"}, {"idle": {"after": "1h"}}])
async def test_a_server_without_a_gpu_has_no_lifetime_and_is_not_given_back(course, policy) -> None:
    said = await granted(course.spawner({"course": policy}), accelerator=None)

    assert not said.keys() & {"lifetime", "idle"}


async def test_the_pod_says_when_its_idle_gpus_are_given_back(course) -> None:
    spawner = course.spawner({"course": {"idle": {"after": "1h", "keeps": 0}}})

    assert (await granted(spawner))["idle"] == {
        "after": 3600,
        "after_if_others_wait": 3600,
        "warning": 600,
        "keeps": 0,
        "kept": 3600,
    }


@pytest.mark.parametrize(
    ("options", "deadline", "ends"),
    [({}, None, 3600), ({}, 600, 600), ({"accelerator": None}, None, None)],
)
async def test_the_line_knows_when_a_server_will_end(course, options, deadline, ends) -> None:
    own = {"extra_pod_config": {"activeDeadlineSeconds": deadline}} if deadline else {}
    spawner = course.spawner({"course": {"lifetime": "1h"}}, **own)
    await begin(spawner, **options)
    gates = spawner.gpuspawner_gates

    assert await gates._policing.lifetime(gates.attempt.choice) == ends


async def refused_at_last(spawner: Any, **limits: str) -> Refusal:
    """Let the last gate refuse a pod whose container has these limits."""
    sent = sends(spawner, limits=limits)
    with pytest.raises(Refusal) as raised:
        await spawner.gpuspawner_gates.run_start()
    assert not sent
    return raised.value


async def test_the_last_gate_judges_the_pod_that_is_really_sent(course) -> None:
    """A hook of the administrator's, or a profile's, may have changed it."""
    spawner = course.spawner({"course": {"gpus_per_user": 4}})
    await begin(spawner, gpus=2)
    assert course.counted(spawner) == 2

    refusal = await refused_at_last(spawner, **{GPU: "8"})

    assert refusal.status_code == 403
    assert "this server would have 8 GPUs" in refusal.text
    assert course.counted(spawner) == 0


async def test_what_is_counted_is_what_is_really_sent(course) -> None:
    spawner = course.spawner({"course": {"gpus_per_user": 4}})
    await begin(spawner, gpus=2)
    counts: list[int] = []
    sends(spawner, lambda: counts.append(course.counted(spawner)), limits={GPU: "3"})

    await spawner.gpuspawner_gates.run_start()

    assert counts == [3]


async def test_the_last_gate_sends_no_pod_of_which_nobody_can_tell_what_it_takes(
    course, caplog
) -> None:
    caplog.set_level(logging.INFO)
    spawner = course.spawner({"course": {"gpus_per_user": 4}})
    await begin(spawner)

    refusal = await refused_at_last(spawner, **{GPU: "lots"})

    assert "an error in the hub's configuration" in refusal.text
    assert "nobody can tell what the pod takes" in caplog.text
    assert course.counted(spawner) == 0


@pytest.fixture
def made_after_the_hook() -> dict[str, Any]:
    """Traits with which KubeSpawner can't make the pod before the administrator's hook."""
    known: dict[str, int] = {}
    return {"pre_spawn_hook": lambda _: known.update(uid=1000), "uid": lambda _: known["uid"]}


async def test_a_pod_that_cannot_be_made_before_the_hook_is_judged_when_it_is_sent(
    course, made_after_the_hook
) -> None:
    spawner = course.spawner({"course": {"gpus_per_user": 4}}, **made_after_the_hook)
    await begin(spawner, gpus=8)
    assert course.counted(spawner) == 0

    assert "this server would have 8 GPUs" in (await refused_at_last(spawner)).text


async def test_a_server_whose_pod_cannot_be_made_before_the_hook_ends_after_its_lifetime(
    course, made_after_the_hook
) -> None:
    policies = {"course": {"groups": ["course"], "lifetime": "4h"}}
    spawner = course.spawner(policies, **made_after_the_hook)
    await begin(spawner)
    sent = sends(spawner)

    await spawner.gpuspawner_gates.run_start()

    assert sent[0].spec.active_deadline_seconds == 4 * 3600
    assert json.loads(sent[0].metadata.annotations[GRANT])["lifetime"] == 4 * 3600


async def test_a_policy_that_leaves_no_accelerator_denies_a_gpu_that_every_server_has(
    course,
) -> None:
    none = {"guests": {"accelerators": [], "explanation": "Guests get no GPU"}}
    spawner = course.spawner(none, extra_resource_limits={GPU: "1"}, accelerators={}, images={})

    refusal = await refused(spawner, accelerator=None)

    assert refusal.status_code == 403
    assert "Guests get no GPU. GPU isn't offered to you." in refusal.text


async def test_a_policy_that_leaves_no_accelerator_denies_a_gpu_that_a_hook_adds(course) -> None:
    spawner = course.spawner({"guests": {"accelerators": []}})
    await begin(spawner, accelerator=None)

    assert "isn't offered to you" in (await refused_at_last(spawner, **{GPU: "1"})).text


@pytest.mark.parametrize(
    "guests",
    [
        {"accelerators": []},
        {"gpus_per_user": 0},
        {"gpus_per_user": 0.1},
        {"gpu_servers_per_user": 0},
        {"images": []},
        {"accelerators": ["a100"], "gpus_per_server": {"a100": 0}},
    ],
    ids=str,
)
async def test_no_model_is_offered_to_whom_policies_leave_none_that_the_hub_could_discover(
    course, guests
) -> None:
    spawner = course.spawner({"guests": guests}, accelerators={}, gpu_weights={"a.com/gpu": 0.5})

    form = await spawner.get_options_form()

    assert course.of(spawner).offers.accelerators
    assert "No GPU is offered to you." in form
    assert "to choose from" not in form


async def test_a_model_may_come_for_which_alone_there_is_an_image_that_policies_allow(
    course,
) -> None:
    images = {"base": {"image": "base:1"}, "l4": {"image": "l4:1", "accelerators": ["l4"]}}
    spawner = course.spawner({"guests": {"images": ["l4"]}}, accelerators={}, images=images)

    assert "There are no GPUs to choose from right now." in await spawner.get_options_form()


@pytest.mark.parametrize(
    "guests",
    [
        {"accelerators": ["a100"]},
        {"accelerators": ["a100"], "gpus_per_server": {"l4": 0}},
        {"gpus_per_user": {GPU: 0}},
        {"gpus_per_user": 0.5},
    ],
    ids=str,
)
async def test_a_model_that_policies_allow_may_come_where_the_hub_discovers_models(
    course, guests
) -> None:
    course.hub.view.state.put(convert("Node", labelled(node("c", 1), FOUND)))
    spawner = course.spawner({"guests": guests}, accelerators={}, gpu_weights={"a.com/gpu": 0.5})

    form = await spawner.get_options_form()

    assert set(course.of(spawner).offers.accelerators) == {"gpu", "tesla-t4"}
    assert "There are no GPUs to choose from right now." in form
    assert "No GPU is offered to you" not in form


async def test_a_gpu_that_a_hook_adds_has_a_lifetime(course) -> None:
    spawner = course.spawner({"course": {"lifetime": "4h"}})
    await begin(spawner, accelerator=None)
    sent = sends(spawner, limits={GPU: "1"})

    await spawner.gpuspawner_gates.run_start()

    assert sent[0].spec.active_deadline_seconds == 4 * 3600


async def test_a_start_that_skips_the_second_gate_is_judged_by_the_last(course) -> None:
    """Another program's spawner may call `start` alone."""
    spawner = course.spawner(
        {"course": {"gpus_per_user": 1}}, extra_resource_limits={GPU: "2"}, accelerators={}
    )

    assert "this server would have 2 GPUs" in (await refused_at_last(spawner)).text


async def test_a_limit_of_one_accelerator_leaves_another_on_the_same_nodes_alone(course) -> None:
    """Two entries may differ in nothing that a pod selects; the choice tells which is meant."""
    both = {"small": T4, "large": {**T4, "display_name": "Large"}}
    spawner = course.spawner({"course": {"gpus_per_server": {"large": 0}}}, accelerators=both)

    await spawner.options_from_query({"opt-accelerator": ["small"], "opt-gpus": ["2"]})
    await begin(spawner, accelerator="small", gpus=2)
    sent = sends(spawner)
    await spawner.gpuspawner_gates.run_start()

    assert len(sent) == 1
    assert (await refused(spawner, accelerator="large")).status_code == 403
