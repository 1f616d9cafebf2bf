"""What limits leave of an accelerator, while other servers run."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.offers.offers import Offers
from gpuspawner.policies.allowed_offers import Sizes, narrow
from gpuspawner.policies.charges import Charge
from gpuspawner.policies.owner import Owner
from gpuspawner.policies.policies import Limit, Measure, Per, Policy, What
from gpuspawner.policies.remaining import OneMore, Remaining
from gpuspawner.policies.usage import Usage
from tests.unit.makers.policy_worlds import GPUS, T4S, counts, people, usage_of

SERVERS, MEMORY = Measure(What.GPU_SERVERS), Measure(What.MEMORY)
CORES = Measure(What.CPU)
GIB = 2**30
ACCELERATORS = {
    "t4": {"counts": [2, 1, 4], "node_selector": {"gpu": "t4"}},
    "a100": {"counts": [1], "node_selector": {"gpu": "a100"}},
}
OFFERS = Offers.parse(accelerators=ACCELERATORS, memory_choices=["8Gi", "4Gi"])
SIZES = Sizes({}, memory=0.5)
ANN, BOB = Owner("ann", frozenset({"course"})), Owner("bob", frozenset({"course"}))
TRAIN, DEMO = Owner("ann", server="train"), Owner("ann", server="demo")


def limited(measure: Measure, most: int, per: Per = Per.USER) -> Policy:
    course = people(groups=["course"]) if per is Per.GROUP else people(users=["*"])
    return Policy(f"{measure.what}-{per}", course, limits=(Limit(per, measure, most),))


def running(*servers: tuple[Owner, dict[Measure, int]]) -> Usage:
    return usage_of(servers)


def left(
    usage: Usage, *policies: Policy, of: str | None = "t4", offers: Offers = OFFERS, **more: Any
) -> Remaining:
    accelerator = offers.accelerators[of] if of else None
    sizes = more.get("sizes", SIZES)
    return OneMore(offers, accelerator, counts(usage, ANN, policies), sizes).remaining()


def test_a_limit_that_leaves_nothing_is_named_with_its_figures():
    policy = limited(GPUS, 2)
    found = left(running((TRAIN, {GPUS: 1}), (DEMO, {GPUS: 1})), policy)

    assert found.gpus == 0
    assert found.reached is not None
    assert (found.reached.standing.limit, found.reached.standing.used) == (policy.limits[0], 2)
    assert found.reached.standing.servers == ("demo", "train")


def test_a_group_s_share_counts_what_others_take():
    found = left(running((BOB, {GPUS: 3})), limited(GPUS, 3, Per.GROUP))

    assert found.reached is not None
    standing = found.reached.standing
    assert (standing.group, standing.used, standing.servers) == ("course", 3, ())


def test_a_limit_on_servers_with_gpus_leaves_those_without():
    usage, policy = running((TRAIN, {GPUS: 1, SERVERS: 1})), limited(SERVERS, 1)

    assert left(usage, policy).gpus == 0
    assert left(usage, policy, of=None) == Remaining()


def test_the_smallest_server_decides_about_memory():
    policy = limited(MEMORY, 8 * GIB)

    assert left(running((TRAIN, {MEMORY: 6 * GIB})), policy, of=None) == Remaining()
    assert left(running((TRAIN, {MEMORY: 7 * GIB})), policy, of=None).reached is not None


def test_the_smallest_server_may_have_a_size_that_is_entered():
    """Without listed sizes, it has KubeSpawner's own, which may be smaller still."""
    entered, policy = {"min": "1Gi", "max": "8Gi"}, limited(MEMORY, 8 * GIB)

    for sizes, used, is_reached in (
        (["8Gi"], 7 * GIB, False),
        (["8Gi"], 8 * GIB, True),
        ([], 8 * GIB, False),
    ):
        offers = Offers.parse(memory_choices=sizes, unlisted_memory=entered)
        found = left(running((TRAIN, {MEMORY: used})), policy, of=None, offers=offers)
        assert (found.reached is not None) is is_reached


def test_cores_and_memory_count_as_the_part_of_the_choice_that_a_pod_requests():
    """A pod requests half of 4 GiB, and a quarter of 2 cores."""
    offers = Offers.parse(memory_choices=["4Gi"], cpu_choices=[2])
    sizes = Sizes({}, memory=0.5, cpu=0.25)
    for measure, asked in ((MEMORY, 2 * GIB), (CORES, 500)):
        for short in (0, 1):
            usage = running((TRAIN, {measure: 10 * GIB - asked + short}))
            found = left(usage, limited(measure, 10 * GIB), of=None, offers=offers, sizes=sizes)

            assert (found.reached is not None) is bool(short)


def test_a_slice_counts_as_its_part_of_a_gpu():
    mig = "nvidia.com/mig-1g.5gb"
    entry = {"resource": mig, "counts": [1, 2, 4], "node_selector": {"gpu": "mig"}}
    offers = Offers.parse(accelerators={"mig": entry})
    sizes = Sizes({mig: Fraction(1, 4)})
    usage = running((TRAIN, {GPUS: 1}))

    assert left(usage, limited(GPUS, 2), of="mig", offers=offers, sizes=sizes) == Remaining()
    usage = running((TRAIN, {GPUS: Fraction(3, 2)}))
    assert left(usage, limited(GPUS, 2), of="mig", offers=offers, sizes=sizes) == Remaining(2)


def test_what_no_server_may_have_is_no_matter_of_what_is_left():
    """Such choices aren't on offer; if one gets here, its denial says why."""
    assert left(running(), limited(GPUS, 0)) == Remaining()


@given(
    st.integers(0, 5),
    st.integers(0, 5),
    st.sampled_from([Per.USER, Per.GROUP]),
    st.sampled_from([GPUS, T4S, SERVERS]),
)
def test_each_choice_up_to_what_is_left_keeps_all_limits_and_no_larger_one_does(
    most, used, per, measure
):
    policy = limited(measure, most, per)
    offers = narrow(OFFERS, [policy], SIZES)
    usage = running((TRAIN, {measure: used}))
    for accelerator in offers.accelerators.values():
        counted = counts(usage, ANN, [policy])
        found = OneMore(offers, accelerator, counted, SIZES).remaining()
        for count in accelerator.counts:
            amounts = {GPUS: count, Measure(What.GPUS, accelerator.key): count, SERVERS: 1}
            asked = Charge(frozenset({"ann"}), amounts=amounts)
            denied = [*counted.over_limits(asked)]
            assert bool(denied) == (found.gpus is not None and count > found.gpus)
