"""The errors that an administrator reads about an invalid accelerator."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.offers.offers import Offers
from gpuspawner.offers.shapes import Memory, OfferError
from gpuspawner.offers.types import Default
from tests.unit.makers.anything import anything
from tests.unit.makers.configured import A100, accelerator, offers

X = {"x": object()}
SCALE_UP_ERRORS = [
    ({"max_nodes": 4}, ": 'minutes' is missing"),
    ({"max_nodes": 0, "minutes": 8}, ".max_nodes: 0 is not a whole number of at least 1"),
    ({"max_nodes": True, "minutes": 1}, ".max_nodes: true is not a whole number"),
    ({"max_nodes": 1, "minutes": "8"}, ".minutes: '8' is not a number"),
    ({"max_nodes": 1, "minutes": 0.0}, ".minutes: 0.0 is not a number more"),
    ({"max_nodes": 1, "minutes": 0}, ".minutes: 0 is not a whole number of"),
    ({"max_nodes": 1, "minutes": 1e6}, ".minutes: 1000000.0 is not a number"),
]
EXPRESSIONS = [
    ({"operator": "in", "values": ["b"]}, ".operator: 'in' is not one of In, NotIn, Exists"),
    ({"operator": "In"}, ": In needs values"),
    ({"operator": "Exists", "values": ["b"]}, ".values: Exists takes no values"),
    ({"operator": "Gt", "values": ["big"]}, ": Gt needs one value, a whole number in quotes"),
    ({"operator": "Gt", "values": [1]}, ".values[0]: 1 is not text; write it in quotes"),
    ({"operator": "In", "values": ["b", "-c"]}, ".values[1]: '-c' cannot be a label's value"),
]
FIELDS = [
    ({"key": "spec.x", "values": ["b"]}, ".key: 'spec.x' is not metadata.name, the only field"),
    ({"key": "metadata.name", "values": ["a", "b"]}, ": In on a field needs exactly one value"),
]
TERMS = [
    ({}, ": an empty term matches no node"),
    ({"match_expressions": []}, ": unknown key 'match_expressions' (did you mean 'matchExpr"),
    *(
        ({"matchExpressions": [{"key": "a", **it}]}, f".matchExpressions[0]{e}")
        for it, e in EXPRESSIONS
    ),
    *(({"matchFields": [{"operator": "In", **it}]}, f".matchFields[0]{e}") for it, e in FIELDS),
]
NO_EXECUTE = {"key": "a", "effect": "NoExecute"}
TOLERATIONS = [
    ({}, ": without a key the operator must be Exists"),
    ({"key": "a", "value": 1}, ".value: 1 is not text"),
    ({"key": "a", "operator": "Exists", "value": "b"}, ".value: Exists takes no value; use the"),
    ({"key": "a", "effect": "noschedule"}, ".effect: 'noschedule' is not one of NoSchedule, Pre"),
    ({"key": "a", "tolerationSeconds": 3}, ".tolerationSeconds: is only allowed with the effect"),
    ({**NO_EXECUTE, "tolerationSeconds": "3"}, ".tolerationSeconds: '3' is not a whole number"),
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
BOTH_AT_A = [{"name": "a", "mountPath": "/a"}, {"name": "b", "mountPath": "/a"}]
ERRORS_IN_OBJECTS = [
    ("node_selector", {"gpu": True}, "['gpu']: true is not text; write it in quotes"),
    ("node_selector", {"gpu": "a b"}, "['gpu']: 'a b' cannot be a label's value"),
    ("node_selector", {"a/b/c": "x"}, "['a/b/c']: 'a/b/c' is not the key of a label"),
    ("node_selector", {f"{'a' * 254}/x": "y"}, "['aaaa"),
    *(("node_affinity", [term], f"[0]{error}") for term, error in TERMS),
    *(("tolerations", [it], f"[0]{error}") for it, error in TOLERATIONS),
    ("environment", {"A B": "x"}, "['A B']: 'A B' is not a name of an environment variable"),
    *(("volumes", [it], f"[0]{error}") for it, error in VOLUMES),
    ("volumes", 2 * [{"name": "a", "emptyDir": {}}], "[1]['name']: there is another volume 'a'"),
    *(("volume_mounts", [{"name": "a", **it}], f"[0]{error}") for it, error in MOUNTS),
    ("volume_mounts", BOTH_AT_A, "[1].mountPath: something else is mounted at '/a'"),
    ("runtime_class", "NVIDIA", ": 'NVIDIA' is not a name in Kubernetes"),
    ("runtime_class", "a" * 254, ": 'aaaa"),
]
ERRORS = [
    ("default", {"gpus": 3}, ".default.gpus: 3 is not among the choices"),
    ("default", {"memory": "4Gi"}, ".default.memory: '4Gi' is not among the choices"),
    ("default", {"image": "torch"}, ".default.image: 'torch' is not among the choices"),
    ("default", {"cpus": 1}, ".default: unknown key 'cpus' (did you mean 'cpu'?)"),
    *((field, value, f".{field}{error}") for field, value, error in ERRORS_IN_OBJECTS),
    *(("scale_up", value, f".scale_up{error}") for value, error in SCALE_UP_ERRORS),
    ("counts", [1, 0], ".counts[1]: 0 is not a whole number of at least 1"),
    ("counts", [True], ".counts[0]: true is not a whole number"),
    ("counts", ["2"], ".counts[0]: '2' is not a whole number"),
    ("counts", [10**30], ".counts[0]: a very large number is not a whole number of at most 100000"),
    ("counts", [100_001], ".counts[0]: 100001 is not a whole number of at most 100000"),
    ("counts", [1, 1], ".counts[1]: 1 is listed twice"),
    ("counts", [], ".counts: is empty; write at least one or leave it out"),
    ("counts", 2, ".counts: 2 is not a list"),
    ("count", [1], ": unknown key 'count' (did you mean 'counts'?)"),
    ("display_name", 100, ".display_name: 100 is not text; write it in quotes"),
    ("display_name", " ", ".display_name: ' ' is empty; write a text or leave it out"),
    ("resource", "gpu", ".resource: 'gpu' is not the name of an extended resource, such as"),
    ("resource", "Nvidia.com/gpu", ".resource: 'Nvidia.com/gpu' is not the name of an extended"),
    ("resource", "requests.x/y", ".resource: 'requests.x/y' is not the name of an extended"),
    ("resource", "kubernetes.io/x/y", ".resource: 'kubernetes.io/x/y' is not the name of an ext"),
    ("resource", f"{'a' * 250}/x", ".resource: 'aaaa"),
    ("node_selector", {}, ".node_selector: is empty; write at least one or leave it out"),
    ("node_selector", [], ".node_selector: a list is not a mapping"),
    ("node_affinity", [], ".node_affinity: is empty"),
    ("volumes", [{"name": "a", "csi": X}], ".volumes[0].csi.x: a object is not plain"),
    ("shared_memory", "8GB", ".shared_memory: '8GB' is not a size of memory; write it as"),
    ("shared_memory", "0", ".shared_memory: '0' is not more than 0"),
    ("shared_memory", "1e400", ".shared_memory: '1e400' is more than any machine has"),
    ("shared_memory", True, ".shared_memory: true is not a quantity, such as 2, 500m or 16Gi"),
    ("memory_choices", ["100m"], ".memory_choices[0]: '100m' is not a whole number of bytes"),
    ("memory_choices", [8, 16], ".memory_choices[0]: 8 is 8 bytes; write a unit, such as 8Gi"),
    ("memory_choices", ["1Gi", "1024Mi"], ".memory_choices[1]: '1024Mi' is listed twice"),
    ("cpu_choices", ["1u"], ".cpu_choices[0]: '1u' is finer than a thousandth of a core"),
    ("cpu_choices", [-1], ".cpu_choices[0]: -1 is not more than 0"),
    ("resource", f"{'a' * 241}kubernetes.io/x", ".resource: 'aaaa"),
    ("count", None, ": unknown key 'count' (did you mean 'counts'?)"),
    ("\ud800", 1, ": unknown key '\\ud800'; allowed are display_name, description,"),
    ("tolerations", [{1: 2}], ".tolerations[0]: the key 1 is not text; write it in quotes"),
    ("cpu_choices", [10**5000], ".cpu_choices[0]: a very large number is not an amount of CPU"),
]


@pytest.mark.parametrize(("field", "value", "message"), ERRORS)
def test_an_error_in_an_accelerator_names_the_field_and_the_allowed_values(field, value, message):
    with pytest.raises(OfferError) as raised:
        accelerator(**{field: value})

    assert str(raised.value).startswith(f"GPUSpawner.accelerators['t4']{message}")


@pytest.mark.each_python
def test_what_contains_itself_is_refused():
    endless = []
    endless.append(endless)

    with pytest.raises(OfferError, match=r"\['t4'\]: is nested too deeply"):
        accelerator(volumes=[{"name": "a", "csi": {"x": endless}}])


@pytest.mark.each_python
@given(field=st.sampled_from(sorted(A100)), value=anything)
def test_any_configuration_is_read_or_refused_in_one_short_line(field, value):
    told = ""
    try:
        accelerator(**{field: value})
    except OfferError as error:
        told = str(error)

    assert "\n" not in told
    assert len(told) < 400


def test_the_first_accelerator_is_the_default_unless_another_is_named():
    assert offers().default_accelerator == "a100"
    assert offers(default_accelerator="T4").default_accelerator == "t4"
    assert offers(default_accelerator="").default_accelerator is None
    assert Offers.parse().default_accelerator is None


def test_an_omitted_option_is_the_configured_default_or_the_first():
    read = offers(memory_choices=["8Gi", "16Gi"])

    assert read.choices(read.accelerators["a100"]).default.gpus == 2
    least = Default(1, "minimal", Memory("8Gi", 8 * 1024**3), None)
    assert read.choices(read.accelerators["t4"]).default == least
    assert read.choices(None).default.gpus == 0


def test_discovered_accelerators_are_never_the_default():
    read = offers().with_accelerators([accelerator()])

    assert list(read.accelerators) == ["t4"]
    assert read.default_accelerator is None
