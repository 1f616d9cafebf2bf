import pytest

from gpuspawner.kube.objects import Undecodable, convert
from gpuspawner.scheduling.state import ClusterState, UndecodableObjects
from tests.unit.makers import objects

NODE = {
    "metadata": {"name": "gpu-1", "labels": {"zone": "a"}},
    "spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}, {"key": "x", "effect": "Later"}]},
    "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "3", "nvidia.com/gpu": "4"}},
}


def pod(name="p", node="gpu-1", gpus="1", **fields):
    return objects.pod(name, node, requests={"cpu": "500m", "gpu": gpus}, **fields)


def put(state, kind, plain):
    state.put(convert(kind, plain))


@pytest.fixture
def state():
    return ClusterState.from_objects(nodes=[NODE], pods=[pod()])


def test_a_node_sums_its_free_resources(state):
    node = state.nodes["gpu-1"]
    assert node.free == {"cpu": 7500, "memory": 32 * 2**30, "pods": 2, "nvidia.com/gpu": 3}
    assert node.requested == {"cpu": 500, "nvidia.com/gpu": 1}
    assert [taint.key for taint in node.taints] == ["gpu"]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_holds_nothing(state, phase):
    put(state, "Pod", pod(status={"phase": phase}))
    assert state.nodes["gpu-1"].free["nvidia.com/gpu"] == 4
    assert not state.pods


def test_putting_or_removing_a_pod_twice_counts_once(state):
    put(state, "Pod", pod(gpus="2"))
    put(state, "Pod", pod(gpus="2"))
    assert state.nodes["gpu-1"].free["nvidia.com/gpu"] == 2
    state.remove("Pod", "hub", "p")
    state.remove("Pod", "hub", "p")
    assert state.nodes["gpu-1"].free["nvidia.com/gpu"] == 4
    assert state.nodes["gpu-1"].lowest is None


def test_a_pod_counts_even_if_its_node_is_put_later():
    state = ClusterState()
    put(state, "Pod", pod())
    assert "gpu-1" not in state.nodes
    put(state, "Node", NODE)
    assert state.nodes["gpu-1"].free["nvidia.com/gpu"] == 3
    state.remove("Node", "", "gpu-1")
    put(state, "Node", NODE)
    assert state.nodes["gpu-1"].free["nvidia.com/gpu"] == 3


def test_a_node_that_changes_keeps_its_pods(state):
    changed = {**NODE, "status": {"allocatable": {"nvidia.com/gpu": "1", "pods": "3"}}}
    put(state, "Node", changed)
    put(state, "Pod", pod("q"))
    assert state.nodes["gpu-1"].free["nvidia.com/gpu"] == -1


@pytest.mark.parametrize(
    "metadata",
    [
        {"ownerReferences": [{"kind": "DaemonSet", "name": "x", "controller": True}]},
        {"annotations": {"kubernetes.io/config.mirror": "x"}},
        {"ownerReferences": [{"kind": "Node", "name": "gpu-1"}]},
    ],
)
def test_pods_of_daemonsets_and_static_pods_count_as_staying(state, metadata):
    put(state, "Pod", pod("d", metadata=metadata))
    assert state.nodes["gpu-1"].staying_requested == {"cpu": 500, "nvidia.com/gpu": 1}


def test_a_pod_with_an_unreadable_request_makes_its_node_doubtful(state):
    put(state, "Pod", pod("broken", gpus="many"))
    assert set(state.nodes["gpu-1"].unreadable) == {"hub/broken"}
    state.remove("Pod", "hub", "broken")
    assert not state.nodes["gpu-1"].unreadable


def test_an_undecodable_object_is_kept_until_a_valid_version_replaces_it(state):
    put(state, "Pod", {"metadata": {"name": "p", "namespace": "hub"}, "spec": 5})
    assert [undecodable.name for undecodable in state.undecodable] == ["p"]
    assert not state.pods
    put(state, "Pod", pod())
    assert not list(state.undecodable)


def test_a_kind_is_known_once_its_objects_were_given(state):
    assert state.known("Pod")
    assert not state.known("Namespace")
    state.mark_unknown("Pod")
    assert not state.known("Pod")


def test_keys_lists_all_objects_including_undecodable_ones(state):
    put(state, "Pod", pod("q", node=""))
    put(state, "Pod", {"metadata": {"name": "o", "namespace": "hub"}, "spec": 5})
    assert set(state.keys("Pod")) == {("hub", "p"), ("hub", "q"), ("hub", "o")}
    assert set(state.keys("Node")) == {("", "gpu-1")}


def test_objects_of_other_kinds_may_change_while_keys_are_listed(state):
    put(state, "Pod", {"metadata": {"name": "o", "namespace": "hub"}, "spec": 5})
    keys = state.keys("Pod")

    assert next(keys) == ("hub", "o")
    claim = {"metadata": {"name": "home", "namespace": "hub"}, "spec": 5}
    put(state, "PersistentVolumeClaim", claim)
    assert list(keys) == [("hub", "p")]


def test_what_lasts_changes_with_everything_but_pods_that_will_end(state):
    def changes(change):
        before = state.lasting_version
        change()
        return state.lasting_version > before

    stays = {"ownerReferences": [{"kind": "DaemonSet", "name": "x", "controller": True}]}
    zone_b = {**NODE, "metadata": {"name": "gpu-1", "labels": {"zone": "b"}}}

    assert not changes(lambda: put(state, "Pod", pod("q", node="")))
    assert not changes(lambda: put(state, "Pod", pod("q")))
    assert not changes(lambda: state.remove("Pod", "hub", "q"))
    assert changes(lambda: put(state, "Pod", pod("d", metadata=stays)))
    assert changes(lambda: state.remove("Pod", "hub", "d"))
    assert changes(lambda: put(state, "Node", zone_b))
    assert changes(lambda: put(state, "Namespace", {"metadata": {"name": "hub"}}))
    assert changes(lambda: state.mark_unknown("Pod"))


def test_a_copy_has_the_same_objects_and_changes_alone():
    state = ClusterState.from_objects(
        nodes=[NODE],
        pods=[pod(), pod("waits", node=""), pod("lost", node="gone"), {"metadata": {"name": 1}}],
        priorityClasses=[{"metadata": {"name": "low"}, "value": -10}],
    )
    [*_, copy] = state.copies()

    assert copy.nodes["gpu-1"].free == state.nodes["gpu-1"].free
    assert dict(copy.pods) == dict(state.pods)
    assert dict(copy.unbound_pods) == dict(state.unbound_pods)
    assert list(copy.undecodable) == list(state.undecodable)
    assert copy.all("PriorityClass") == state.all("PriorityClass")
    assert copy.known("PriorityClass")
    assert not copy.known("StorageClass")

    put(copy, "Pod", pod("another"))
    copy.remove("PriorityClass", "", "low")

    assert state.nodes["gpu-1"].free["nvidia.com/gpu"] == 3
    assert "low" in state.all("PriorityClass")


def test_a_copy_is_of_the_moment_when_it_began_whatever_changes_meanwhile():
    state = ClusterState.from_objects(nodes=[NODE], pods=[pod(), pod("another")])
    copies = state.copies()
    next(copies)
    state.remove("Pod", "default", "another")
    put(state, "Pod", pod("later"))
    state.remove("Node", "", "gpu-1")

    [*_, copy] = copies

    assert sorted(it.name for it in copy.nodes["gpu-1"].pods.values()) == ["another", "p"]


def test_a_copy_takes_the_same_taints_for_temporary():
    state = ClusterState.from_objects(nodes=[NODE])
    state.expect(frozenset({"gpu"}))

    [*_, copy] = state.copies()

    assert copy.nodes["gpu-1"].lasting_taints == ()


ODD_POD = Undecodable("Pod", "hub", "a", "n1", "no containers")


@pytest.mark.each_python
def test_an_undecodable_pod_is_found_on_its_last_node_only() -> None:
    objects = UndecodableObjects()

    objects.put(ODD_POD)
    objects.put(Undecodable("Pod", "hub", "a", "n2", "no containers"))

    assert list(objects.pods_on("n1")) == []
    assert [it.node for it in objects.pods_on("n2")] == ["n2"]
    assert list(objects.keys("Pod")) == ["hub/a"]
    assert list(objects.keys("Node")) == []


@pytest.mark.each_python
def test_a_discarded_undecodable_object_is_gone() -> None:
    objects = UndecodableObjects()
    objects.put(ODD_POD)

    assert objects.discard("Pod", "hub/a")
    assert not objects.discard("Pod", "hub/a")
    assert not objects
    assert list(objects.pods_on("n1")) == []


@pytest.mark.parametrize("claim", [None, {"namespace": "hub", "name": "run-4711"}])
def test_nothing_is_left_of_a_volume_that_is_gone(state, claim):
    """Other workloads' claims have new names all the time, and a hub runs for months."""
    put(state, "PersistentVolume", {"metadata": {"name": "v"}, "spec": {"claimRef": claim}})
    state.remove("PersistentVolume", "", "v")

    assert state.storage._open == state.storage._reserved == {}
