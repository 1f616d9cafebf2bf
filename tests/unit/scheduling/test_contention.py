"""Checks promises against every placement of the other pods, by trying them all."""

from collections.abc import Iterator, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.scheduling.contention import Demand, all_keep_room, is_certain, requests_with_pod
from gpuspawner.scheduling.node_info import NodeInfo, PodInfo

pytestmark = pytest.mark.usefixtures("clock")

GPU = "nvidia.com/gpu"
Free = dict[str, dict[str, int]]

requests = st.fixed_dictionaries({"nvidia.com/gpu": st.integers(0, 4), "cpu": st.integers(0, 4)})
frees = st.dictionaries(
    st.sampled_from("abcd"),
    st.fixed_dictionaries(
        {"nvidia.com/gpu": st.integers(0, 4), "cpu": st.integers(0, 5), "pods": st.integers(0, 3)}
    ),
    min_size=1,
)


def nodes_of(free: Free) -> Mapping[str, NodeInfo]:
    nodes = {name: NodeInfo(name) for name in free}
    for name, amounts in free.items():
        nodes[name].free = dict(amounts)
    return nodes


def fitting(asked: Mapping[str, int], free: Free) -> frozenset[str]:
    return frozenset(n for n, left in free.items() if all(left[r] >= a for r, a in asked.items()))


def demand_of(asked: dict[str, int], free: Free) -> Demand:
    counted = requests_with_pod(asked)
    return Demand(counted, fitting(counted, free))


def landings(pods: list[Demand], free: Free) -> Iterator[Free]:
    """Yield what is free after every order and placement in which some of the pods could land."""
    yield free
    for i, pod in enumerate(pods):
        for name in fitting(pod.requests, free):
            left = {n: dict(amounts) for n, amounts in free.items()}
            for resource, amount in pod.requests.items():
                left[name][resource] -= amount
            yield from landings(pods[:i] + pods[i + 1 :], left)


@given(frees, requests, st.lists(requests, max_size=3))
def test_a_certain_pod_fits_wherever_the_others_land(free, mine, theirs) -> None:
    demand = demand_of(mine, free)
    others = [other for other in (demand_of(their, free) for their in theirs) if other.nodes]
    if demand.nodes and is_certain(demand, others, nodes_of(free)):
        assert all(fitting(demand.requests, left) for left in landings(others, free))


Rooms = dict[str, tuple[int, int]]
"""Free GPUs of each node, and GPUs of pods with a lower priority."""

rooms = st.dictionaries(
    st.sampled_from("abc"), st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1
)


def rooms_of(rooms: Rooms) -> Mapping[str, NodeInfo]:
    nodes = nodes_of({name: {GPU: free, "pods": 110} for name, (free, _) in rooms.items()})
    for name, (_, low) in rooms.items():
        nodes[name].add(PodInfo("x/low", name, {}, -1, {GPU: low}))
        nodes[name].free[GPU] += low
    return nodes


def asking(gpus: int, rooms: Rooms) -> Demand | None:
    """The demand of a pod; where it fits nowhere now, others make way for it."""
    asked = {GPU: gpus, "pods": 1}
    if fits := {name for name, (free, _) in rooms.items() if gpus <= free}:
        return Demand(asked, frozenset(fits))
    helped = {name for name, it in rooms.items() if gpus <= sum(it)}
    return Demand(asked, frozenset(helped), below=0) if helped else None


def has_place(demand: Demand, rooms: Rooms) -> bool:
    return any(
        demand.requests[GPU] <= (free if demand.below is None else free + low)
        for free, low in rooms.values()
    )


def preemptions(pods: list[Demand], rooms: Rooms) -> Iterator[Rooms]:
    """Yield what is left after every order and placement of some pods; few or all make way."""
    yield rooms
    for i, pod in enumerate(pods):
        gpus = pod.requests[GPU]
        for name, (free, low) in rooms.items():
            if gpus > (free if pod.below is None else free + low):
                continue
            ways = range(max(0, gpus - free), low + 1) if pod.below is not None else [0]
            for ended in {min(ways), max(ways)}:
                left = {**rooms, name: (free + ended - gpus, low - ended)}
                yield from preemptions(pods[:i] + pods[i + 1 :], left)


@given(rooms, st.integers(1, 4), st.lists(st.integers(1, 4), max_size=3))
def test_a_certain_pod_has_a_place_whoever_else_ends_pods_of_lower_priority(
    rooms, mine, theirs
) -> None:
    demand, others = asking(mine, rooms), [asking(it, rooms) for it in theirs]
    known = [it for it in others if it]
    if demand and is_certain(demand, known, rooms_of(rooms)):
        assert all(has_place(demand, left) for left in preemptions(known, rooms))


@pytest.mark.parametrize(("priority", "certain"), [(10, False), (None, False), (0, True)])
def test_what_a_pod_ends_may_go_to_one_of_a_higher_priority_that_fits_elsewhere(
    priority: int | None, certain: bool
) -> None:
    """The scheduler leaves nominated pods of a lower priority aside."""
    nodes = rooms_of({"a": (1, 0), "b": (0, 2)})
    user = Demand({GPU: 2, "pods": 1}, frozenset("b"), below=0, priority=0)
    staff = Demand({GPU: 1, "pods": 1}, frozenset("a"), priority=priority)

    assert is_certain(user, [staff], nodes) is certain
    assert all_keep_room(staff, [user], [], nodes) is certain
    assert all_keep_room(user, [staff], [], nodes) is certain


@given(st.lists(st.integers(1, 8), min_size=1, max_size=6), st.integers(1, 40))
def test_exactly_as_many_equal_pods_are_certain_as_there_is_room(sizes, people) -> None:
    free = {str(i): {"nvidia.com/gpu": n, "pods": 110} for i, n in enumerate(sizes)}
    demand = demand_of({"nvidia.com/gpu": 1}, free)

    certain = is_certain(demand, [demand] * (people - 1), nodes_of(free))

    assert certain == (people <= sum(sizes))


def test_nothing_is_certain_beside_a_pod_that_is_not_simple() -> None:
    free = {"a": {"pods": 110}, "b": {"pods": 110}}
    simple, spreading = demand_of({}, free), Demand({"pods": 1}, frozenset("ab"), simple=False)

    assert not is_certain(simple, [spreading], nodes_of(free))
    assert not is_certain(spreading, [simple], nodes_of(free))
    assert is_certain(spreading, [], nodes_of(free))


def test_a_pod_that_fits_only_on_other_nodes_does_not_matter() -> None:
    free = {"a": {"nvidia.com/gpu": 1, "pods": 110}, "b": {"pods": 110, "nvidia.com/gpu": 0}}
    gpu = demand_of({"nvidia.com/gpu": 1}, free)
    elsewhere = Demand({"pods": 1, "nvidia.com/gpu": 1}, frozenset("b"))

    assert is_certain(gpu, [elsewhere], nodes_of(free))


def test_a_pod_with_unknown_nodes_counts_on_every_node() -> None:
    free = {"a": {"nvidia.com/gpu": 1, "pods": 110}}
    gpu = demand_of({"nvidia.com/gpu": 1}, free)

    assert not is_certain(gpu, [Demand(gpu.requests, None)], nodes_of(free))


def test_a_request_of_zero_needs_no_room() -> None:
    assert requests_with_pod({"cpu": 0, "memory": 5}) == {"pods": 1, "memory": 5}


@given(st.lists(st.integers(1, 4), min_size=2, max_size=6), st.integers(1, 25))
def test_several_scarce_resources_make_no_fewer_equal_pods_certain(sizes, people) -> None:
    """As many CPUs and volumes as GPUs are left on each node, for example."""
    free = {str(i): {GPU: n, "cpu": 2 * n, "pods": 110} for i, n in enumerate(sizes)}
    attachable = {str(i): {"csi": n} for i, n in enumerate(sizes)}
    asked = {GPU: 1, "cpu": 2, "pods": 1, "csi": 1}
    demand = Demand(asked, frozenset(free), attachable=attachable)

    certain = is_certain(demand, [demand] * (people - 1), nodes_of(free))

    assert certain == (people <= sum(sizes))
