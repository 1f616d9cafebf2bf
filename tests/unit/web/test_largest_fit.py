"""The largest choices that fit on one node, compared with evaluations."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple, replace

from gpuspawner.offers.manifest import EVERYWHERE, PodRules
from gpuspawner.offers.offers import Offers
from gpuspawner.preflight.availability import Trials
from gpuspawner.scheduling import ClusterState, Outcome, evaluate
from gpuspawner.web.largest_fit import Fit, largest, largest_fits
from tests.unit.makers.surveyed import LATER, STOCK, T4, node, pod

GI = 2**30
OFFERS = Offers.parse(
    accelerators={"t4": T4}, memory_choices=["2Gi", "4Gi", "8Gi", "12Gi"], cpu_choices=[1, 4, 8]
)
[T4_OFFERED] = OFFERS.accelerators.values()
SIDECAR = {"name": "s", "image": "s", "resources": {"requests": {"memory": "1Gi", "cpu": "250m"}}}
INIT = {"name": "i", "image": "i", "resources": {"requests": {"memory": "6Gi"}}}


def with_more(*containers, init=()):
    [server] = STOCK["spec"]["containers"]
    spec = {"containers": [server, *containers], "initContainers": list(init)}
    return {**STOCK, "spec": spec}


def found(nodes, pods=(), stock=STOCK, rules=EVERYWHERE, accelerator=T4_OFFERED):
    state = ClusterState.from_objects(nodes=nodes, pods=list(pods), deviceClasses=[])
    return largest_fits(state, Trials(OFFERS, stock, rules, LATER), accelerator)


def test_requests_of_other_containers_reduce_the_largest_choice():
    there = found([node("a", 1)], stock=with_more(SIDECAR, init=[INIT]))

    assert there.free == (Fit(1, 15 * GI, 7750),)


def test_whole_includes_away_nodes():
    there = found([node("a", 2, spec={"unschedulable": True}), node("b", 0, capacity=4)])

    assert there.free == ()
    assert there.whole == (Fit(4, 16 * GI, 8000),)


def test_nodes_without_the_accelerator_count_only_for_servers_without_one():
    plain = node("plain", 0, memory="64Gi")

    assert found([plain], accelerator=None).free == (Fit(0, 64 * GI, 8000),)
    assert found([plain]).whole == ()


triples = st.tuples(*[st.integers(0, 4)] * 3)


def holds(machine, wanted):
    return all(a >= b for a, b in zip(machine, wanted, strict=True))


@given(st.lists(triples, max_size=8), triples)
def test_the_largest_sizes_hold_everything_that_any_size_holds(every, wanted):
    assert any(holds(it, wanted) for it in every) == any(holds(it, wanted) for it in largest(every))


@pytest.mark.parametrize("stock", [STOCK, with_more(SIDECAR, init=[INIT])])
@given(
    nodes=st.lists(st.tuples(st.integers(0, 4), st.sampled_from([4, 9, 16])), max_size=3),
    taken=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 6)), max_size=4),
    part=st.sampled_from([1.0, 0.5, 0.3]),
)
def test_a_choice_that_could_start_is_never_ruled_out(stock, nodes, taken, part):
    there = [node(f"n{i}", gpus, memory=f"{size}Gi") for i, (gpus, size) in enumerate(nodes)]
    pods = [pod(f"p{i}", f"n{on}", gpus, f"{size}Gi") for i, (on, gpus, size) in enumerate(taken)]
    state = ClusterState.from_objects(nodes=there, pods=pods, deviceClasses=[])
    trials = Trials(OFFERS, stock, PodRules(memory_requested=part), LATER)
    known = largest_fits(state, trials, T4_OFFERED)
    smallest = trials.smallest(T4_OFFERED)

    for count in T4["counts"]:
        for size in OFFERS.memory_choices:
            grant = replace(smallest, gpus=count, memory=size.bytes, cpu=4000)
            outcome = evaluate(state, trials.pod(grant)).outcome
            wanted = (count, size.bytes, 4000)
            if not any(holds(astuple(it), wanted) for it in known.whole):
                assert outcome is Outcome.IMPOSSIBLE
            if not any(holds(astuple(it), wanted) for it in known.free):
                assert outcome is not Outcome.FITS
            elif stock is STOCK:
                assert outcome is Outcome.FITS
