"""Policies at the gates of one spawner; tests/hub/policies/test_policies.py tests them in a hub."""

import asyncio
import json
import logging
from types import SimpleNamespace
from typing import Any

import pytest
from tornado import web

from gpuspawner.cluster.health import Forbidden, Live, Stale
from gpuspawner.kube.servers import GRANT, SERVER, USER
from gpuspawner.policies.policy_gates import RETRY_SECONDS
from gpuspawner.start.refusal import Refusal
from tests.unit.makers.courses import NODES, OFFERS, Course, Train, begin, refused, refused_query
from tests.unit.makers.profile_lists import CPU
from tests.unit.makers.profile_lists import GPU as GPU_PROFILE
from tests.waiting import UNIT_PATIENCE

# What policies deny, at each gate


async def test_without_policies_nothing_is_judged_or_counted(hub_with) -> None:
    hub = hub_with(*NODES)
    spawner = hub.spawner(**OFFERS)  # whose user has neither roles nor a database
    await begin(spawner, gpus=8)

    pod = await spawner.get_pod_manifest()

    assert GRANT not in pod.metadata.annotations
    assert hub.runtime(spawner).accounts is None


@pytest.mark.parametrize(
    ("policy", "options", "told"),
    [
        ({"accelerators": ["v100"]}, {"accelerator": "t4"}, "T4 isn't offered to you."),
        ({"images": ["base"]}, {"image": "torch"}, "torch isn't offered to you."),
        ({"images": []}, {}, "base isn't offered to you."),
        ({"gpus_per_server": 2}, {"gpus": "4"}, "at most 2 GPUs; this one would have 4 GPUs."),
        (
            {"gpus_per_user": {"t4": 2}},
            {"gpus": "4"},
            "at most 2 × T4 at a time; this server would have 4 × T4.",
        ),
    ],
)
async def test_what_a_policy_never_allows_is_refused_with_403_at_each_gate(
    policy, options, told, course
) -> None:
    explained = {**policy, "explanation": "Ask the tutors."}
    spawner = course.spawner({"course": explained})
    sent = {"accelerator": "t4", **options}

    at_first = await refused_query(spawner, **sent)
    numbers = {name: int(value) if name == "gpus" else value for name, value in sent.items()}
    at_second = await refused(spawner, **numbers)

    for refusal in (at_first, at_second):
        assert (refusal.status_code, refusal.slug) == (403, "policy")
        assert refusal.text.startswith("Ask the tutors. ")
        assert told in refusal.text
    assert course.counted(spawner) == 0


async def test_a_limit_that_others_will_leave_is_refused_with_409_at_each_gate(course) -> None:
    spawner = course.spawner({"course": {"gpus_per_user": 4}})
    course.put(spawner, "alice", "train", 3)

    at_first = await refused_query(spawner, accelerator="t4", gpus="2")
    at_second = await refused(spawner, gpus=2)

    for refusal in (at_first, at_second):
        assert (refusal.status_code, refusal.slug) == (409, "limit")
        assert refusal.text == (
            "You can have 4 GPUs at a time, and you're using 3: train. "
            "Stop one of these servers first, or choose a smaller one."
        )
        assert refusal.details == "course"
    await begin(spawner, gpus=1)


async def test_a_share_counts_the_servers_of_all_members_without_naming_them(course) -> None:
    course.database.user("bob", "course")
    course.database.user("eve")
    spawner = course.spawner({"course": {"groups": ["course"], "gpus_per_group": 8}})
    course.put(spawner, "bob", "secret", 7)
    course.put(spawner, "eve", "", 8)

    refusal = await refused(spawner, gpus=2)

    assert refusal.text == (
        "The group course can have 8 GPUs at a time, and uses 7; your server would add 2 GPUs. "
        "Please choose a smaller server, or try again later."
    )
    await begin(spawner, gpus=1)


async def test_a_new_server_replaces_the_pod_of_its_own_name(course) -> None:
    spawner = course.spawner({"course": {"gpus_per_user": 4}})
    course.show(spawner, 4)

    await begin(spawner, gpus=4)


@pytest.mark.parametrize("preflight", ["warn", "off"])
async def test_policies_hold_whatever_the_preflight_does(preflight, course) -> None:
    spawner = course.spawner({"course": {"gpus_per_server": 1}}, preflight=preflight)

    assert (await refused(spawner, gpus=2)).status_code == 403
    assert (await refused_query(spawner, accelerator="t4", gpus="2")).status_code == 403


async def test_a_start_counts_for_its_owner_whatever_else_is_written_on_the_pod(course) -> None:
    other = {USER: "bob", SERVER: "other"}
    spawner = course.spawner(
        {"course": {"gpus_per_user": 4}}, extra_labels=other, extra_annotations=other
    )

    await begin(spawner, gpus=4)

    assert course.counted(spawner) == 4


async def test_two_servers_that_start_at_once_do_not_both_get_the_last_gpu(course) -> None:
    """Judging and counting happen in one tick of the event loop, after all waiting."""

    async def policies(_: Any) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {"course": {"gpus_per_user": 4}}

    default, train = course.spawner(policies), course.spawner(policies, Train)
    assert default.pod_name != train.pod_name

    done = await asyncio.gather(
        begin(default, gpus=4), begin(train, gpus=4), return_exceptions=True
    )

    assert [type(it) for it in done].count(Refusal) == 1
    assert course.counted(default) == 4


# Profiles


async def test_a_profile_counts_what_its_pod_asks_for(course) -> None:
    policies = {"course": {"gpus_per_server": 1, "explanation": "One is enough."}}
    spawner = course.spawner(policies, profile_list=[GPU_PROFILE, CPU])

    refusal = await refused(spawner, profile="gpu", gpus="two")

    assert refusal.status_code == 403
    assert "this one would have 2 GPUs" in refusal.text
    await begin(spawner, profile="gpu", gpus="one")
    assert course.counted(spawner) == 1


async def test_a_profile_that_is_withheld_is_refused_by_its_name(course) -> None:
    policies = {"course": {"profiles": ["cpu-only"]}}
    spawner = course.spawner(policies, profile_list=[CPU, GPU_PROFILE])

    refusal = await refused(spawner, profile="gpu")

    assert refusal.status_code == 403
    assert "“GPU server” isn't offered to you" in refusal.text


async def test_who_names_no_profile_is_told_of_those_that_the_form_shows(course) -> None:
    override = {
        **GPU_PROFILE["kubespawner_override"],
        "extra_resource_limits": {"nvidia.com/gpu": "16"},
    }
    whole = {"display_name": "Whole machine", "slug": "dgx", "kubespawner_override": override}
    listed = [CPU, GPU_PROFILE, whole]
    spawner = course.spawner({"two": {"gpus_per_user": 2}}, profile_list=listed)

    refusal = await refused(spawner, profile="staff")

    assert "profile: 'staff' isn't offered. Choose cpu-only or gpu." in refusal.text


# What can't be counted

LIMITS = [{"gpus_per_user": 4}, {"groups": ["course"], "gpus_per_group": 8}]


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("health", [Forbidden(("pods",), "secret"), Stale(60, "secret")])
async def test_what_cannot_be_counted_is_refused_with_503_at_each_gate(
    health, limit, course, caplog
) -> None:
    caplog.set_level(logging.INFO)
    spawner = course.spawner({"course": limit})
    course.health = health

    for refusal in (await refused_query(spawner, accelerator="t4"), await refused(spawner)):
        assert (refusal.status_code, refusal.slug) == (503, "uncounted")
        assert refusal.headers == {"Retry-After": str(RETRY_SECONDS)}
        assert "Please try again in a few seconds." in refusal.text
        assert "secret" not in refusal.text
    assert "the servers' pods can't be read" in caplog.text
    assert course.counted(spawner) == 0


async def test_a_server_that_takes_nothing_of_a_limit_starts_although_it_cannot_be_counted(
    course,
) -> None:
    spawner = course.spawner({"course": {"gpus_per_user": 4}})
    course.health = Forbidden(("pods",), "no")

    await begin(spawner, accelerator=None)


async def test_a_start_waits_until_servers_can_be_counted_and_then_reads_the_owner_again(
    course,
) -> None:
    spawner = course.spawner(
        {"all": {"gpus_per_user": 8}, "staff": {"groups": ["staff"], "gpus_per_server": 1}}
    )
    course.health = Stale(12.0, "connection reset by peer")

    async def joins_meanwhile(_: float) -> bool:
        course.row.groups.append(course.database.group("staff"))
        course.health = Live(0.0)
        return True

    course.accounts(spawner).following.live = joins_meanwhile

    assert (await refused(spawner, gpus=2)).status_code == 403


@pytest.mark.parametrize("policies", [{}, {"gpus_per_server": 2}, {"accelerators": ["t4"]}])
async def test_what_needs_no_count_is_judged_at_once_without_one(policies, course) -> None:
    spawner = course.spawner({"course": policies})
    course.health = Stale(12.0, "connection reset by peer")

    async def forever(_: float) -> bool:
        return await asyncio.Event().wait()

    course.accounts(spawner).following.live = forever

    async with asyncio.timeout(UNIT_PATIENCE):
        await begin(spawner, gpus=2)


# Whom policies judge


async def test_the_owner_is_judged_and_not_the_administrator_who_clicked(course) -> None:
    spawner = course.spawner({"users": {"except": {"roles": ["admin"]}, "gpus_per_server": 1}})
    root = course.database.user("root", admin=True)
    body = json.dumps({"accelerator": "t4", "gpus": 2}).encode()
    request = SimpleNamespace(body=body, headers={})
    spawner.handler = SimpleNamespace(request=request, current_user=root, settings={})

    assert (await refused(spawner)).status_code == 403


async def test_an_administrator_s_own_server_is_judged_by_the_role_of_administrators(
    hub_with,
) -> None:
    course = Course(hub_with(*NODES), admin=True)
    spawner = course.spawner({"users": {"except": {"roles": ["admin"]}, "gpus_per_server": 1}})

    await begin(spawner, gpus=2)


async def test_groups_are_those_of_the_moment_of_each_gate(course) -> None:
    spawner = course.spawner({"staff": {"groups": ["staff"], "gpus_per_server": 1}})
    await spawner.options_from_query({"opt-accelerator": ["t4"], "opt-gpus": ["4"]})

    course.row.groups.append(course.database.group("staff"))

    assert (await refused(spawner, gpus=4)).status_code == 403


# Policies that a function of the administrator returns for each server


async def test_a_function_makes_the_policies_for_each_server(course) -> None:
    asked: list[Any] = []

    def policies(spawner: Any) -> dict[str, Any]:
        asked.append(spawner)
        return {"course": {"gpus_per_server": 1 if spawner.user.name == "alice" else 8}}

    spawner = course.spawner(policies)

    assert (await refused(spawner, gpus=2)).status_code == 403
    assert set(asked) == {spawner}


@pytest.mark.parametrize("returned", [None, [], "course", {"course": {"gpu_per_user": 1}}, {1: {}}])
async def test_nonsense_from_a_function_opens_nothing_and_is_a_misconfiguration(
    returned, course, caplog
) -> None:
    caplog.set_level(logging.INFO)
    spawner = course.spawner(lambda _: returned)

    for refusal in (await refused_query(spawner, accelerator="t4"), await refused(spawner)):
        assert refusal.slug == "misconfigured"
        assert "an error in the hub's configuration" in refusal.text
        assert "course" not in refusal.text
    assert "GPUSpawner.policies" in caplog.text


async def test_a_hub_that_measures_no_use_says_once_that_idle_of_a_function_does_nothing(
    course, caplog
) -> None:
    spawner = course.spawner(lambda _: {"until-lunch": {"idle": {"after": "1h"}}})

    for _ in range(2):
        await begin(spawner, gpus=1)

    text = "GPUSpawner.policies['until-lunch'].idle needs GPUSpawner.gpu_use"
    assert caplog.text.count(text) == 1


async def test_a_function_that_raises_opens_nothing(course, caplog) -> None:
    caplog.set_level(logging.INFO)

    def policies(_: Any) -> dict[str, Any]:
        raise KeyError("https://budget.example.org/token")

    refusal = await refused(course.spawner(policies))

    assert refusal.slug == "misconfigured"
    assert "budget" not in refusal.text
    assert "The function GPUSpawner.policies failed" in caplog.text


@pytest.mark.usefixtures("clock")
async def test_a_function_that_never_answers_lets_no_start_wait_forever(course) -> None:
    """The hub limits only what comes later, and a start that waits counts as one of those."""

    async def policies(_: Any) -> dict[str, Any]:
        return await asyncio.Event().wait() or {}

    refusal = await asyncio.wait_for(refused(course.spawner(policies)), 3600)

    assert refusal.slug == "misconfigured"


async def test_a_function_may_forbid_a_server_itself(course) -> None:
    def policies(_: Any) -> dict[str, Any]:
        raise web.HTTPError(403, "Your budget is used up.")

    with pytest.raises(web.HTTPError, match="Your budget is used up") as raised:
        await begin(course.spawner(policies))

    assert raised.value.status_code == 403


async def test_a_function_may_return_no_policies(course) -> None:
    """The server counts all the same: the function may return some for the next one."""
    spawner = course.spawner(lambda _: {})
    await begin(spawner, gpus=8)

    assert course.counted(spawner) == 8
