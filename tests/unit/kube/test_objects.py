import gc

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.kube.objects import KINDS, Undecodable, convert, decode
from gpuspawner.kube.pods import Pod

pytestmark = pytest.mark.each_python

POD = {
    "metadata": {"name": "jupyter-ann", "namespace": "hub", "labels": None, "new": 1},
    "spec": {
        "nodeName": "gpu-1",
        "containers": [
            {"name": "nb", "ports": [{"hostPort": 80, "hostIP": "10.0.0.1"}]},
        ],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": None}
            }
        },
    },
}


def test_an_object_is_the_same_from_json_and_from_a_dict():
    assert decode("Pod", msgspec.json.encode(POD)) == convert("Pod", POD)


def test_a_pod_keeps_the_fields_that_decide_and_skips_the_others():
    pod = convert("Pod", POD)
    assert isinstance(pod, Pod)
    assert pod.spec.node_name == "gpu-1"
    assert pod.spec.containers[0].ports[0].host_ip == "10.0.0.1"
    assert pod.spec.affinity.node_affinity.required.node_selector_terms is None


def test_the_garbage_collector_does_not_track_structs():
    pod = convert("Pod", POD)
    assert not any(map(gc.is_tracked, (pod, pod.metadata, pod.spec, pod.spec.containers[0])))


@pytest.mark.parametrize(
    ("fields", "node"),
    [({"status": {"conditions": "none"}}, "gpu-1"), ({"spec": {"nodeName": 7}}, None)],
    ids=["a node", "an unreadable one"],
)
def test_an_undecodable_pod_keeps_its_identity(fields, node):
    made = convert("Pod", {**POD, **fields})

    assert isinstance(made, Undecodable)
    assert (made.kind, made.namespace, made.name) == ("Pod", "hub", "jupyter-ann")
    assert made.node == node
    assert made.problem


@pytest.mark.parametrize("raw", [b"", b"{", b"null", b"[]", b"\xff", b"[" * 100_000, b'"x"'])
def test_bytes_that_are_not_an_object_are_undecodable(raw):
    assert isinstance(decode("Node", raw), Undecodable)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["metadata", "spec", "status", "name", "labels", "containers", "taints"]
            )
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.sampled_from(sorted(KINDS)), anything)
def test_convert_never_raises(kind, plain):
    convert(kind, plain)
