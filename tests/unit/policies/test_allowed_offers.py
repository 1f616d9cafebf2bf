"""A policy narrows what is on offer, and never chooses."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gpuspawner.offers.grant import Grant, grant_for
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.user_options import GPURequest, parse, user_options
from gpuspawner.policies.allowed_offers import Sizes, narrow, shown_withheld
from gpuspawner.policies.owner import Owner
from gpuspawner.policies.policies import Policy
from gpuspawner.policies.policies_config import read_policies

ANN = Owner("ann", frozenset({"course"}))
T4 = {"node_selector": {"gpu": "t4"}, "counts": [2, 1]}
A100 = {
    "node_selector": {"gpu": "a100"},
    "counts": [1, 2, 4],
    "memory_choices": ["16Gi", "32Gi"],
    "cpu_choices": [4, 8],
    "default": {"gpus": 2, "image": "torch", "memory": "32Gi", "cpu": 8},
}
EVERYTHING: dict[str, Any] = {
    "accelerators": {"t4": T4, "a100": A100},
    "images": {
        "base": {"image": "base:1"},
        "torch": {"image": "torch:1", "accelerators": ["t4", "a100"]},
    },
    "memory_choices": ["8Gi", "4Gi"],
    "cpu_choices": [2, 1],
}


def offers(**changed: Any) -> Offers:
    return Offers.parse(**{**EVERYTHING, **changed})


def left(of: Offers, *policies: dict[str, Any]) -> Offers:
    written = {f"p{number}": it for number, it in enumerate(policies)}
    return narrow(of, read_policies(written, {}, of).policies, Sizes({}))


def asked(of: Offers, **options: Any) -> GPURequest:
    request = parse(options, of)
    assert isinstance(request, GPURequest)
    return request


def test_discovered_accelerators_are_no_default_because_of_a_policy() -> None:
    found = Offers.parse(accelerators={"t4": T4}).accelerators.values()
    hub = Offers().with_accelerators(found)

    assert asked(left(hub, {"gpus_per_user": 4})) == GPURequest()


def test_a_default_that_a_policy_withholds_is_the_first_that_is_left() -> None:
    small = {"gpus_per_server": 1, "memory_per_server": "16Gi", "cpu_per_server": 4}
    hub = offers(default_accelerator="a100")

    of_a100 = asked(left(hub, small, {"images": ["base"]}))
    of_t4 = asked(left(hub, {"accelerators": ["t4"]}))

    assert user_options(of_a100) == {
        "accelerator": "a100",
        "gpus": 1,
        "image": "base",
        "memory": "16Gi",
        "cpu": 4,
    }
    assert of_t4.accelerator == "t4"
    assert asked(left(offers(default_accelerator=""), {"accelerators": ["t4"]})).gpus == 0


TOO_LITTLE = (
    ({"memory_per_server": "2Gi"}, "memory"),
    ({"cpu_per_user": 0.5}, "cpu"),
    ({"images": []}, "image"),
    ({"images": ["torch"]}, "image"),
)


@pytest.mark.parametrize(("policy", "option"), TOO_LITTLE, ids=str)
@pytest.mark.parametrize("unlisted", [{}, {"min": "1Gi", "max": "2Gi"}], ids=["", "unlisted"])
def test_an_option_without_values_left_never_becomes_kubespawner_s_own(
    policy, option, unlisted
) -> None:
    """Without its default, nobody would have chosen the server that starts, nor limited it."""
    hub = offers(default_accelerator="", unlisted_memory=unlisted)
    narrowed = left(hub, policy)

    assert getattr(asked(narrowed), option) == getattr(asked(hub), option)
    for key in narrowed.accelerators:
        assert getattr(asked(narrowed, accelerator=key), option) is not None


def test_an_accelerator_of_which_no_server_is_left_is_not_on_offer() -> None:
    hub = offers(images={"torch": {"image": "torch:1", "accelerators": ["a100"]}})
    shown = {"memory_per_server": "8Gi", "show_withheld": True}

    assert list(left(hub, {"images": []}).accelerators) == ["t4"]
    assert list(left(hub, shown).accelerators) == ["t4"]
    policies = read_policies({"small": shown}, {}, hub).policies
    assert [it.key for it, _ in shown_withheld(hub, policies, Sizes({}))] == ["a100"]


def test_only_sizes_within_the_limit_can_be_entered() -> None:
    hub = offers(unlisted_memory={"min": "2Gi", "max": "16Gi", "step": "2Gi"})
    six = left(hub, {"memory_per_server": "6Gi"})

    assert six.unlisted_memory is not None
    assert [it.text for it in six.unlisted_memory.sizes] == ["2Gi", "4Gi", "6Gi"]
    assert left(hub, {"memory_per_server": "1Gi"}).unlisted_memory is None


def test_an_accelerator_stays_on_offer_if_an_allowed_size_can_be_entered() -> None:
    hub = offers(unlisted_memory={"min": "2Gi", "max": "64Gi", "step": "2Gi"})

    assert "a100" in left(hub, {"memory_per_server": "8Gi"}).accelerators
    assert list(left(hub, {"memory_per_server": "1Gi"}).accelerators) == []


@pytest.mark.parametrize("accelerator", ["a100", "t4"])
def test_if_all_listed_sizes_are_too_large_the_smallest_that_can_be_entered_is_listed(
    accelerator,
) -> None:
    """A size filled into the text field for other sizes would hold for all accelerators."""
    hub = offers(unlisted_memory={"min": "2Gi", "max": "64Gi", "step": "1Gi"})
    three = left(hub, {"memory_per_server": "3Gi"})
    choices = three.choices(three.accelerators[accelerator])

    assert [it.text for it in choices.memory] == ["2Gi"]
    assert asked(three, accelerator=accelerator).memory == "2Gi"
    assert asked(three, accelerator=accelerator, memory="3Gi").memory == "3Gi"


written = st.fixed_dictionaries(
    {},
    optional={
        "accelerators": st.lists(st.sampled_from(["t4", "a100"]), unique=True),
        "images": st.lists(st.sampled_from(["base", "torch"]), unique=True),
        "gpus_per_server": st.integers(0, 4),
        "lifetime": st.just("8h"),
        "gpu_servers_per_user": st.integers(0, 1),
        "memory_per_user": st.sampled_from(["1Gi", "4Gi", "8Gi", "16Gi", "32Gi"]),
        "cpu_per_server": st.sampled_from([0.5, 1, 2, 4, 8]),
    },
)


@given(
    st.lists(written, min_size=1, max_size=3),
    st.sampled_from([None, "", "t4", "a100"]),
    st.sampled_from([{}, {"accelerator": None}, {"accelerator": "a100"}]),
)
def test_what_is_left_is_never_more_and_has_the_same_defaults_if_they_are_left(
    policies, default, options
) -> None:
    hub = offers(default_accelerator=default)
    narrowed = left(hub, *policies)
    assume(options.get("accelerator") in {None, *narrowed.accelerators})
    grant = grant_for(asked(hub, **options), narrowed)

    found = asked(narrowed, **options)

    assert isinstance(grant_for(found, hub), Grant)
    if isinstance(grant, Grant):
        assert found == asked(hub, **options)


def test_without_policies_the_offers_are_the_same() -> None:
    hub = offers()

    assert narrow(hub, (), Sizes({})) is hub
    assert narrow(hub, [Policy("p")], Sizes({})) == hub
