"""What administrators write in `policies` and `gpu_weights`, and what it means."""

from __future__ import annotations

import ast
from datetime import time
from fractions import Fraction
from itertools import takewhile
from textwrap import dedent
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner import traits
from gpuspawner.offers.offers import Offers
from gpuspawner.policies.owner import Names
from gpuspawner.policies.policies import (
    Hours,
    Limit,
    Measure,
    Per,
    Policies,
    Policy,
    What,
    when_idle,
)
from gpuspawner.policies.policies_config import WrittenPolicy, read_policies, read_weights
from gpuspawner.reservations.granted import WhenIdle
from tests.unit.makers.policy_worlds import people
from tests.unit.makers.writing import EVERY_KEY, GIB, MIG, OFFERS, gpus, limits, policy


def test_the_example_has_every_key() -> None:
    assert EVERY_KEY.keys() == set(WrittenPolicy.__struct_encode_fields__)


def test_a_policy_says_what_its_keys_say() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    read = policy(**EVERY_KEY)

    assert set(read.limits) == {
        gpus(1, per=Per.SERVER),
        gpus(2),
        gpus(8, per=Per.GROUP),
        Limit(Per.SERVER, Measure(What.MEMORY), 16 * GIB),
        Limit(Per.USER, Measure(What.MEMORY), 32 * GIB),
        Limit(Per.GROUP, Measure(What.MEMORY), 1024 * GIB),
        Limit(Per.SERVER, Measure(What.CPU), 2000),
        Limit(Per.USER, Measure(What.CPU), 2500),
        Limit(Per.GROUP, Measure(What.CPU), 500),
        Limit(Per.USER, Measure(What.GPU_SERVERS), 1),
        Limit(Per.GROUP, Measure(What.GPU_SERVERS), 20),
    }
    assert read == Policy(
        name="course",
        people=people(users=["ann", "tutor-*"], groups=["ml-*"], roles=["admin"]),
        excepted=people(users=["bob"], groups=["staff"], roles=["grader"]),
        servers=Names.of(["", "exp-*"]),
        excepted_servers=Names.of(["exp-0"]),
        hours=(
            Hours(frozenset(range(5)), time(8), time(18), berlin),
            Hours(frozenset({5}), time(), time(), berlin),
        ),
        accelerators=frozenset({"t4"}),
        profiles=frozenset({"large"}),
        images=frozenset({"pytorch"}),
        limits=read.limits,
        lifetime=8 * 3600,
        idle=WhenIdle(7200, 1200, 600, 2, 7200),
        explanation="The course shares eight GPUs.",
        shows_withheld=True,
    )


def test_a_policy_without_keys_is_for_everybody_and_allows_everything() -> None:
    assert policy() == Policy("course")


def test_policies_are_sorted_by_name() -> None:
    read = read_policies({"b": {}, "a": {}}, {}, OFFERS)

    assert [it.name for it in read.policies] == ["a", "b"]


@pytest.mark.parametrize("written", [{}, {"a": None}])
def test_there_may_be_no_policies(written: object) -> None:
    assert not read_policies(written, {}, OFFERS)
    assert not Policies()


@pytest.mark.parametrize("key", EVERY_KEY)
def test_a_key_with_null_counts_as_left_out(key: str) -> None:
    assert policy(**{key: None}) == policy()


def test_null_deeper_in_a_policy_counts_as_left_out_too() -> None:
    assert policy(**{"except": {"users": None, "groups": ["staff"]}}).excepted == people(
        groups=["staff"]
    )
    assert limits(gpus_per_user={"all": None, "t4": 1}) == (gpus(1, "t4"),)


def test_the_examples_in_the_traits_help_can_be_read() -> None:
    def example(trait: str) -> Any:
        text = dedent(getattr(traits, trait).help).partition(f"c.GPUSpawner.{trait} = ")[2]
        lines = takewhile(lambda line: not line or line.startswith(" "), text.splitlines()[1:])
        return ast.literal_eval("\n".join([text.splitlines()[0], *lines]))

    weights = read_weights(example("gpu_weights"))
    assert read_policies(example("policies"), weights, Offers.parse())


# Limits


def test_a_limit_is_for_all_gpus_for_an_accelerator_or_for_a_resource() -> None:
    by_kind = {"all": 4, "t4": 2, "nvidia.com/gpu": 1, MIG: "500m"}

    assert limits(gpus_per_user=by_kind) == (
        gpus(4),
        gpus(2, "t4"),
        gpus(1, "nvidia.com/gpu"),
        gpus(Fraction(1, 2), MIG),
    )
    assert limits(gpus_per_user=4) == limits(gpus_per_user={"all": "4"}) == (gpus(4),)


def test_a_limit_of_nothing_is_a_limit() -> None:
    assert limits(gpus_per_user=0, gpu_servers_per_user=0) == (
        gpus(0),
        Limit(Per.USER, Measure(What.GPU_SERVERS), 0),
    )


def test_a_limit_may_name_a_resource_of_an_accelerator_or_with_a_weight() -> None:
    fpga = "example.com/fpga"

    assert limits(gpus_per_user={"example.com/t4": 1}) == (gpus(1, "example.com/t4"),)
    assert limits(weights={fpga: 0}, gpus_per_user={fpga: 1}) == (gpus(1, fpga),)


def test_whole_amounts_are_ints_so_that_sums_of_them_are_fast() -> None:
    [limit] = limits(gpus_per_user="2.0")
    [fraction] = limits(gpus_per_user=0.5)

    assert type(limit.most) is int
    assert fraction.most == Fraction(1, 2)


# Keys of accelerators and images


def test_keys_may_be_written_as_people_confuse_them() -> None:
    read = policy(accelerators=["a100-80", "T4"], gpus_per_user={"a100-80": 1})

    assert read.accelerators == {"A100_80", "t4"}
    assert read.limits == (gpus(1, "A100_80"),)


def test_a_model_that_the_hub_discovers_may_be_named_as_people_confuse_it() -> None:
    """Discovered keys have small letters and hyphens; the names of resources stay."""
    read = policy(Offers.parse(), accelerators=["Tesla_T4"], gpus_per_user={"Tesla_T4": 1})

    assert read.accelerators == {"tesla-t4"}
    assert read.limits == (gpus(1, "tesla-t4"),)
    resource = policy(Offers.parse(), accelerators=["example.com/My_GPU"])
    assert resource.accelerators == {"example.com/My_GPU"}


def test_an_empty_list_leaves_nothing_on_offer() -> None:
    read = policy(accelerators=[], images=[], profiles=[])

    assert read.accelerators == read.images == read.profiles == frozenset()


def test_an_image_that_users_enter_can_stay_on_offer() -> None:
    entered = Offers.parse(unlisted_image={"validation_regex": "^quay.io/.+"})

    assert policy(entered, images=["x_y:1.0-RC"]).images == {"x_y:1.0-RC"}


# Lifetimes


@pytest.mark.each_python
@given(*[st.integers(0, 9999)] * 3)
def test_every_lifetime_is_read_exactly(days: int, hours: int, minutes: int) -> None:
    parts = zip((days, hours, minutes), "dhm", strict=True)
    written = "".join(f"{count}{unit}" for count, unit in parts if count)

    if written:
        whole = (days * 24 + hours) * 60 + minutes
        assert policy(lifetime=written).lifetime == whole * 60


# Idle servers


def test_what_is_left_out_of_idle_has_its_usual_value() -> None:
    assert policy(idle={"after": "1h"}).idle == WhenIdle(3600, 3600, 600, 2, 3600)


def test_all_keys_of_idle_are_read() -> None:
    written = {"after": "2h", "after_if_others_wait": "20m", "warning": "5m"}

    assert policy(idle={**written, "keeps": 0, "kept": "30m"}).idle == WhenIdle(
        7200, 1200, 300, 0, 1800
    )


def test_of_several_policies_the_strictest_of_each_time_counts() -> None:
    course = policy(idle={"after": "1h", "warning": "30m", "keeps": 5})
    everybody = policy(idle={"after": "8h", "warning": "5m", "keeps": 1, "kept": "2h"})

    assert when_idle([course, policy(), everybody]) == WhenIdle(3600, 3600, 300, 1, 3600)
    assert when_idle([policy()]) is None


@pytest.mark.parametrize(
    ("kept", "gpu_use", "mistakes"),
    [
        ("30d", {"directory": "/use"}, 0),
        ("31d", {"directory": "/use"}, 1),
        ("31d", {"directory": "/use", "days": 31}, 0),
        ("31d", {}, 0),
    ],
)
def test_no_server_is_kept_for_longer_than_the_files_that_say_so(kept, gpu_use, mistakes) -> None:
    """Without files, nothing is known after a restart."""
    long = Policies((policy(idle={"after": "1h", "kept": kept}),))

    found = list(long.unmeasured({**gpu_use, "prometheus": "http://prometheus"}))

    assert [".idle.kept is longer than 30 days" in it for it in found] == mistakes * [True]


# Weights


@pytest.mark.each_python
@pytest.mark.parametrize(
    ("written", "weight"),
    [
        ("1/7", Fraction(1, 7)),
        (0.25, Fraction(1, 4)),
        (0.1, Fraction(1, 10)),
        ("14/7", 2),
        (0, 0),
    ],
)
def test_a_weight_is_exact(written: object, weight: Fraction) -> None:
    assert read_weights({MIG: written}) == {MIG: weight}


def test_a_weight_of_null_counts_as_left_out() -> None:
    assert read_weights({MIG: None, "x.com/gpu": 2}) == {"x.com/gpu": 2}
