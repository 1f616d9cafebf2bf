"""What the doctor says of policies; tests/doctor asks it about a real cluster."""

import pytest

from gpuspawner.doctor.checks import policies
from gpuspawner.messages.administrators import Severity
from tests.unit.makers.files import Files, of_fleet, tried_on

GPU = "nvidia.com/gpu"
SELECTOR = {"nvidia.com/gpu.product": "Tesla-T4"}
ACCELERATORS = {
    "t4": {"display_name": "T4", "counts": [2, 4], "node_selector": SELECTOR},
    "mig": {"display_name": "MIG", "resource": "nvidia.com/mig-1g.5gb", "node_selector": SELECTOR},
}
PROFILES = [
    {"display_name": "Small"},
    {"display_name": "Big", "kubespawner_override": {"extra_resource_limits": {GPU: "8"}}},
]


async def found(folder, given, **traits):
    """What the doctor finds in policies."""
    Files(folder, of_fleet("on-premises"))
    hub, tried = await tried_on(folder, policies=given, **traits)
    return [*policies.check(hub), *policies.check_offers(hub, tried)]


async def troubles(folder, policy, **traits):
    """The same for one policy, without what is fine."""
    traits = traits or {"accelerators": ACCELERATORS, "memory_choices": ["4Gi", "8Gi"]}
    made = await found(folder, {"p": policy}, **traits)
    return [it for it in made if it.severity is not Severity.FINE]


async def test_sound_policies_are_counted(tmp_path):
    given = {"a": {"gpus_per_user": 2}, "b": {"groups": ["b"], "lifetime": "8h"}}

    (finding,) = await found(tmp_path, given, accelerators=ACCELERATORS)

    assert (finding.id, finding.text) == ("policies", "The hub has 2 policies.")
    assert await found(tmp_path, {}, accelerators=ACCELERATORS) == []


async def test_the_one_server_of_a_hub_without_a_choice_is_measured(tmp_path):
    given = {"gpus_per_user": 1, "profiles": ["gpu"]}, {"gpus_per_user": 1}

    told = [await troubles(tmp_path, it, extra_resource_limits={GPU: "2"}) for it in given]

    assert {it.id for it in told[0]} == {"policy-unknown", "policy-too-small"}
    assert "is 1, but a server takes at least 2" in told[1][0].text


async def test_a_function_is_not_called(tmp_path):
    (finding,) = await found(tmp_path, lambda _: 1 / 0, accelerators=ACCELERATORS)

    assert (finding.id, finding.severity) == ("policies", Severity.FINE)
    assert "explain --user" in finding.advice


LIMIT = {"gpus_per_user": 2}


@pytest.mark.parametrize(
    "policy",
    [
        {**LIMIT, "except": {"users": ["*"]}},
        {**LIMIT, "groups": ["a", "b*"], "except": {"groups": ["b*", "a"]}},
        {**LIMIT, "users": ["ann"], "except": {"users": ["a*"]}},
        {**LIMIT, "servers": ["", "exp"], "except": {"servers": ["e*", ""]}},
        {**LIMIT, "except": {"servers": ["*"]}},
    ],
)
async def test_a_policy_that_excepts_all_that_it_is_for_applies_to_nobody(tmp_path, policy):
    (finding,) = await troubles(tmp_path, policy)

    assert finding.id == "policy-nobody"
    assert finding.text.startswith("GPUSpawner.policies['p'] applies to no server")


@pytest.mark.parametrize(
    "policy",
    [
        {**LIMIT, "except": {"groups": ["*"]}},  # users without a group are left
        {**LIMIT, "groups": ["a", "b"], "except": {"groups": ["a"]}},
        {**LIMIT, "users": ["ann"], "groups": ["a"], "except": {"groups": ["a"]}},
        {**LIMIT, "groups": ["b*"], "except": {"groups": ["b?"]}},
        {**LIMIT, "servers": ["?*"], "except": {"servers": ["exp-*"]}},
    ],
)
async def test_a_policy_that_may_be_for_somebody_is_no_mistake(tmp_path, policy):
    assert await troubles(tmp_path, policy) == []


async def test_a_policy_that_denies_nothing_is_a_mistake(tmp_path):
    (finding,) = await troubles(tmp_path, {"groups": ["a"], "explanation": "Ask us."})

    assert finding.id == "policy-nothing"


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ({"groups": ["*"], "gpus_per_group": 4}, ["policy-groups"]),
        ({"groups": ["*"], "gpus_per_user": 4}, []),
        ({"groups": ["ml-*"], "gpus_per_group": 4}, []),
    ],
)
async def test_a_share_for_any_group_is_a_mistake(tmp_path, policy, expected):
    assert [it.id for it in await troubles(tmp_path, policy)] == expected


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        (
            {"gpus_per_server": {"t4": 1}},
            "gpus_per_server['t4'] is 1, but t4 takes at least 2, so",
        ),
        (
            {"gpus_per_user": 1, "accelerators": ["t4", "mig"]},
            "gpus_per_user is 1, but t4 takes at least 2, so",
        ),
        (
            {"groups": ["a"], "gpus_per_group": {"nvidia.com/gpu": 1}},
            "gpus_per_group['nvidia.com/gpu'] is 1, but t4 takes at least 2, so",
        ),
        (
            {"memory_per_server": "2Gi"},
            "memory_per_server is 2 GiB, but t4 takes at least 4 GiB and mig takes at least 4 GiB",
        ),
    ],
)
async def test_a_limit_that_no_server_keeps_is_a_mistake(tmp_path, policy, told):
    (finding,) = await troubles(tmp_path, policy)

    assert finding.id == "policy-too-small"
    assert finding.text.startswith(f"GPUSpawner.policies['p'].{told}")


@pytest.mark.parametrize(
    "policy",
    [
        {"gpus_per_user": 1},  # leaves the smaller ones
        {"gpus_per_user": 0},
        {"gpus_per_server": {"t4": 0}},
        {"accelerators": [], "gpus_per_user": 1},
        {"accelerators": ["mig"], "gpus_per_user": {"t4": 1}},
    ],
)
async def test_a_limit_that_leaves_or_denies_something_on_purpose_is_none(tmp_path, policy):
    assert await troubles(tmp_path, policy) == []


async def test_a_limit_that_leaves_sizes_to_be_entered_is_none(tmp_path):
    traits = {"memory_choices": ["4Gi"], "unlisted_memory": {"min": "1Gi", "max": "8Gi"}}
    policy = {"memory_per_server": "2Gi"}

    assert await troubles(tmp_path, policy, accelerators=ACCELERATORS, **traits) == []


async def test_a_limit_counts_what_a_profile_s_pod_requests(tmp_path):
    (finding,) = await troubles(
        tmp_path, {"profiles": ["big"], "gpus_per_user": 4}, profile_list=PROFILES
    )

    assert "gpus_per_user is 4, but the profile “Big” takes at least 8" in finding.text


@pytest.mark.parametrize(
    ("policy", "traits", "told"),
    [
        ({"profiles": ["bigg"]}, {"profile_list": PROFILES}, "did you mean 'big'?"),
        ({"profiles": ["big"]}, {"accelerators": ACCELERATORS}, "there is none"),
        ({"accelerators": ["tesla-t5"]}, {"autoscaling": "none"}, "did you mean 'tesla-t4'?"),
        ({"gpus_per_user": {"tesla-t5": 1}}, {"autoscaling": "none"}, "gpus_per_user['tesla-t5']"),
        ({"gpus_per_user": {"big": 1}}, {"profile_list": PROFILES}, "gpus_per_user['big']"),
    ],
)
async def test_a_key_of_nothing_on_offer_is_a_mistake(tmp_path, policy, traits, told):
    (finding,) = await troubles(tmp_path, policy, **traits)

    assert finding.id == "policy-unknown"
    assert told in f"{finding.text} {finding.advice}"


async def test_profiles_of_a_function_differ_from_user_to_user(tmp_path):
    listed_by = {"profile_list": lambda _: PROFILES}

    assert await troubles(tmp_path, {"profiles": ["for-staff"]}, **listed_by) == []
