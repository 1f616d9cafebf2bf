"""The errors about parts of an accelerator that are Kubernetes objects."""

import pytest

from gpuspawner.offers.shapes import OfferError
from tests.unit.makers.configured import accelerator

EXPRESSIONS = [
    ({"operator": "in", "values": ["b"]}, ".operator: 'in' is not one of In, NotIn, Exists"),
    ({"operator": "In"}, ": In needs values"),
    ({"operator": "Exists", "values": ["b"]}, ".values: Exists takes no values"),
    ({"operator": "Gt", "values": ["big"]}, ": Gt needs one value, a whole number in quotes"),
    ({"operator": "Gt", "values": [1]}, ".values[0]: 1 is not text; write it in quotes"),
    (
        {"operator": "In", "values": ["b", "-c"]},
        ".values[1]: '-c' cannot be a label's value; up to",
    ),
]
FIELDS = [
    ("spec.x", ["b"], ".key: 'spec.x' is not metadata.name, the only field that"),
    ("metadata.name", ["a", "b"], ": In on a field needs exactly one value"),
]
TOLERATIONS = [
    ({}, ": without a key the operator must be Exists"),
    ({"key": "a", "value": 1}, ".value: 1 is not text"),
    (
        {"key": "a", "operator": "Exists", "value": "b"},
        ".value: Exists takes no value; use the operator Equal",
    ),
    (
        {"key": "a", "effect": "noschedule"},
        ".effect: 'noschedule' is not one of NoSchedule, PreferNoSchedule",
    ),
    (
        {"key": "a", "effect": "NoSchedule", "tolerationSeconds": 3},
        ".tolerationSeconds: is only allowed with the effect NoExecute",
    ),
    (
        {"key": "a", "effect": "NoExecute", "tolerationSeconds": "3"},
        ".tolerationSeconds: '3' is not a whole number",
    ),
]
VOLUMES = [
    ({"hostPath": {}}, ": 'name' is missing"),
    ({"name": "A", "emptyDir": {}}, "['name']: 'A' is not a volume's name"),
    ({"name": "a"}, ": a volume has one source besides its name"),
    ({"name": "a", "emptyDir": "x"}, "['emptyDir']: 'x' is not a mapping"),
]
MOUNTS = [
    ({"mountPath": "/a", "readOnly": "yes"}, ".readOnly: 'yes' is not true or false"),
    ({"mountPath": "/a", "subPath": 1}, ".subPath: 1 is not text"),
    ({"mount_path": "/a"}, ": unknown key 'mount_path' (did you mean 'mountPath'?)"),
    ({"mountPath": "a"}, ".mountPath: 'a' is not an absolute path without ':'"),
    ({"mountPath": "/a:b"}, ".mountPath: '/a:b' is not an absolute path without ':'"),
]
ERRORS = [
    ("node_selector", {"gpu": True}, "['gpu']: true is not text; write it in quotes"),
    ("node_selector", {"gpu": "a b"}, "['gpu']: 'a b' cannot be a label's value"),
    ("node_selector", {"a/b/c": "x"}, "['a/b/c']: 'a/b/c' is not the key of a label"),
    ("node_selector", {f"{'a' * 254}/x": "y"}, "['aaaa"),
    ("node_affinity", [{}], "[0]: an empty term matches no node"),
    (
        "node_affinity",
        [{"match_expressions": []}],
        "[0]: unknown key 'match_expressions' (did you mean 'matchExpressions'?)",
    ),
    *(
        (
            "node_affinity",
            [{"matchExpressions": [{"key": "a", **it}]}],
            f"[0].matchExpressions[0]{error}",
        )
        for it, error in EXPRESSIONS
    ),
    *(
        (
            "node_affinity",
            [{"matchFields": [{"key": key, "operator": "In", "values": values}]}],
            f"[0].matchFields[0]{error}",
        )
        for key, values, error in FIELDS
    ),
    *(("tolerations", [it], f"[0]{error}") for it, error in TOLERATIONS),
    ("environment", {"A B": "x"}, "['A B']: 'A B' is not a name of an environment variable"),
    ("environment", {"A": 1}, "['A']: 1 is not text; write it in quotes"),
    *(("volumes", [it], f"[0]{error}") for it, error in VOLUMES),
    (
        "volumes",
        [{"name": "a", "emptyDir": {}}, {"name": "a", "emptyDir": {}}],
        "[1]['name']: there is another volume 'a'",
    ),
    *(("volume_mounts", [{"name": "a", **it}], f"[0]{error}") for it, error in MOUNTS),
    (
        "volume_mounts",
        [{"name": "a", "mountPath": "/a"}, {"name": "b", "mountPath": "/a"}],
        "[1].mountPath: something else is mounted at '/a'",
    ),
    ("runtime_class", "NVIDIA", ": 'NVIDIA' is not a name in Kubernetes"),
    ("runtime_class", "a" * 254, ": 'aaaa"),
]


@pytest.mark.parametrize(("field", "value", "error"), ERRORS)
def test_an_error_names_the_field_and_the_allowed_values(field, value, error):
    with pytest.raises(OfferError) as raised:
        accelerator(**{field: value})

    assert str(raised.value).startswith(f"GPUSpawner.accelerators['t4'].{field}{error}")
