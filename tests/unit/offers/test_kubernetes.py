"""The errors about parts of an accelerator that are Kubernetes objects."""

import pytest

from gpuspawner.offers import OfferError
from tests.unit.offers.configured import accelerator

pytestmark = pytest.mark.each_python

ERRORS = [
    ("node_selector", {"gpu": True}, ".node_selector['gpu']: true is not text; write it in quotes"),
    ("node_selector", {"gpu": "a b"}, ".node_selector['gpu']: 'a b' cannot be a label's value"),
    ("node_selector", {"a/b/c": "x"}, ".node_selector['a/b/c']: 'a/b/c' is not the key of a label"),
    ("node_affinity", [{}], ".node_affinity[0]: an empty term matches no node"),
    (
        "node_affinity",
        [{"match_expressions": []}],
        ".node_affinity[0]: unknown key 'match_expressions' (did you mean 'matchExpressions'?)",
    ),
    (
        "node_affinity",
        [{"matchExpressions": [{"key": "a", "operator": "in", "values": ["b"]}]}],
        ".node_affinity[0].matchExpressions[0].operator: 'in' is not one of In, NotIn, Exists",
    ),
    (
        "node_affinity",
        [{"matchExpressions": [{"key": "a", "operator": "In"}]}],
        ".node_affinity[0].matchExpressions[0]: In needs values",
    ),
    (
        "node_affinity",
        [{"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}],
        ".node_affinity[0].matchExpressions[0].values: Exists takes no values",
    ),
    (
        "node_affinity",
        [{"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["big"]}]}],
        ".node_affinity[0].matchExpressions[0]: Gt needs one value, a whole number in quotes",
    ),
    (
        "node_affinity",
        [{"matchFields": [{"key": "spec.x", "operator": "In", "values": ["b"]}]}],
        ".node_affinity[0].matchFields[0].key: 'spec.x' is not metadata.name, the only field that",
    ),
    (
        "node_affinity",
        [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a", "b"]}]}],
        ".node_affinity[0].matchFields[0]: In on a field needs exactly one value",
    ),
    (
        "node_affinity",
        [{"matchExpressions": [{"key": "a", "operator": "Gt", "values": [1]}]}],
        ".node_affinity[0].matchExpressions[0].values[0]: 1 is not text; write it in quotes",
    ),
    (
        "tolerations",
        [{"key": "a", "effect": "NoExecute", "tolerationSeconds": "3"}],
        ".tolerations[0].tolerationSeconds: '3' is not a whole number",
    ),
    ("tolerations", [{"key": "a", "value": 1}], ".tolerations[0].value: 1 is not text"),
    (
        "volume_mounts",
        [{"name": "a", "mountPath": "/a", "readOnly": "yes"}],
        ".volume_mounts[0].readOnly: 'yes' is not true or false",
    ),
    (
        "volume_mounts",
        [{"name": "a", "mountPath": "/a", "subPath": 1}],
        ".volume_mounts[0].subPath: 1 is not text",
    ),
    ("tolerations", [{}], ".tolerations[0]: without a key the operator must be Exists"),
    (
        "tolerations",
        [{"key": "a", "operator": "Exists", "value": "b"}],
        ".tolerations[0].value: Exists takes no value; use the operator Equal",
    ),
    (
        "tolerations",
        [{"key": "a", "effect": "noschedule"}],
        ".tolerations[0].effect: 'noschedule' is not one of NoSchedule, PreferNoSchedule",
    ),
    (
        "tolerations",
        [{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 3}],
        ".tolerations[0].tolerationSeconds: is only allowed with the effect NoExecute",
    ),
    (
        "environment",
        {"A B": "x"},
        ".environment['A B']: 'A B' is not a name of an environment variable",
    ),
    ("environment", {"A": 1}, ".environment['A']: 1 is not text; write it in quotes"),
    ("volumes", [{"hostPath": {}}], ".volumes[0]: 'name' is missing"),
    ("volumes", [{"name": "A", "emptyDir": {}}], ".volumes[0]['name']: 'A' is not a volume's name"),
    ("volumes", [{"name": "a"}], ".volumes[0]: a volume has one source besides its name"),
    ("volumes", [{"name": "a", "emptyDir": "x"}], ".volumes[0]['emptyDir']: 'x' is not a mapping"),
    (
        "volumes",
        [{"name": "a", "emptyDir": {}}, {"name": "a", "emptyDir": {}}],
        ".volumes[1]['name']: there is another volume 'a'",
    ),
    (
        "volume_mounts",
        [{"name": "a", "mount_path": "/a"}],
        ".volume_mounts[0]: unknown key 'mount_path' (did you mean 'mountPath'?)",
    ),
    (
        "volume_mounts",
        [{"name": "a", "mountPath": "a"}],
        ".volume_mounts[0].mountPath: 'a' is not an absolute path without ':'",
    ),
    (
        "volume_mounts",
        [{"name": "a", "mountPath": "/a"}, {"name": "b", "mountPath": "/a"}],
        ".volume_mounts[1].mountPath: something else is mounted at '/a'",
    ),
    ("runtime_class", "NVIDIA", ".runtime_class: 'NVIDIA' is not a name in Kubernetes"),
    (
        "node_affinity",
        [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b", "-c"]}]}],
        ".node_affinity[0].matchExpressions[0].values[1]: '-c' cannot be a label's value; up to",
    ),
    ("node_selector", {f"{'a' * 254}/x": "y"}, ".node_selector['aaaa"),
    ("runtime_class", "a" * 254, ".runtime_class: 'aaaa"),
    (
        "volume_mounts",
        [{"name": "a", "mountPath": "/a:b"}],
        ".volume_mounts[0].mountPath: '/a:b' is not an absolute path without ':'",
    ),
]


@pytest.mark.parametrize(("field", "value", "message"), ERRORS)
def test_an_error_names_the_field_and_the_allowed_values(field, value, message):
    with pytest.raises(OfferError) as raised:
        accelerator(**{field: value})

    assert str(raised.value).startswith(f"GPUSpawner.accelerators['t4']{message}")
