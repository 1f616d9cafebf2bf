"""`gpuspawner rbac` and `gpuspawner values`."""

from importlib.resources import files
from itertools import permutations

import pytest
import yaml

from gpuspawner.doctor.application import main
from gpuspawner.doctor.helm_values import VALUES, WAYS, merged
from tests.helm import chart


def printed(capsys, *arguments):
    assert main(arguments) == 0
    return capsys.readouterr().out


def objects(text):
    return list(yaml.safe_load_all(text))


@pytest.mark.parametrize(("arguments", "file"), [([], "rbac"), (["minimal"], "rbac-minimal")])
def test_the_rights_are_those_of_the_file(capsys, arguments, file):
    assert printed(capsys, "rbac", *arguments) == (chart.VALUES / f"{file}.yaml").read_text()


@pytest.mark.parametrize("namespace", ["staging", "hub", "jhub-2", "123", "true"])
@pytest.mark.parametrize("account", ["my-jhub", "hub", "123"])
def test_the_rights_go_to_the_service_account_in_its_namespace(capsys, namespace, account):
    words = ("--namespace", namespace, "--service-account", account)

    found = objects(printed(capsys, "rbac", *words))

    assert {it["metadata"]["name"] for it in found} == {f"gpuspawner-{namespace}"}
    subjects = [it["subjects"] for it in found if it["kind"].endswith("Binding")]
    assert subjects == [[{"kind": "ServiceAccount", "name": account, "namespace": namespace}]] * 2


@pytest.mark.parametrize("place", ["openshift-machine-api/cluster-autoscaler-status", "123/hub"])
def test_the_right_to_the_autoscalers_status_is_that_to_the_named_configmap(capsys, place):
    namespace, _, name = place.partition("/")

    found = objects(printed(capsys, "rbac", "--autoscaler-status", place))

    inside = {it["kind"]: it["metadata"].get("namespace") for it in found}
    assert inside == {
        "ClusterRole": None,
        "ClusterRoleBinding": None,
        "Role": namespace,
        "RoleBinding": namespace,
    }
    (role,) = (it for it in found if it["kind"] == "Role")
    assert role["rules"][0]["resourceNames"] == [name]


@pytest.mark.parametrize(
    "arguments",
    [
        ["rbac", "all"],
        ["rbac", "--namespace", "a\nb"],
        ["rbac", "--service-account", 'x"'],
        ["rbac", "--autoscaler-status", "openshift-machine-api"],
        ["rbac", "--autoscaler-status", "a/b/c"],
        ["values", "gke", "../rbac"],
        ["values", "--chart", "latest"],
        ["values", "install-image", "install-from-index"],
    ],
)
def test_what_it_cannot_print_is_a_mistake(capsys, arguments):
    assert main(arguments) == 3

    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"gpuspawner {arguments[0]}: ")


def test_a_misspelt_file_is_told_with_the_nearest_name(capsys):
    main(["values", "on-premise"])

    assert "did you mean 'on-premises'?" in capsys.readouterr().err


def test_every_values_file_can_be_named():
    every = {it.name for it in (files("gpuspawner") / "helm-values").iterdir()}
    others = {"base", "rbac", "rbac-minimal", "pull-images"}

    assert {f"{it}.yaml" for it in (*VALUES, *others)} | {"hub.Dockerfile"} == every


TOGETHER = [it for it in permutations(VALUES, 2) if not {*it} <= {*WAYS}]


@pytest.mark.parametrize("names", [(), *TOGETHER, VALUES[:-2]], ids=" ".join)
def test_files_are_merged_as_helm_merges_them(capsys, names):
    shown = yaml.safe_load(printed(capsys, "values", *names))

    assert shown == chart.merged(chart.read("base"), *map(chart.read, names))


@pytest.mark.parametrize("name", VALUES)
def test_the_comments_of_both_files_stay(capsys, name):
    def comments(text):
        return {line for line in text.splitlines() if line.lstrip().startswith("#")}

    shown = comments(printed(capsys, "values", name))

    written = [(chart.VALUES / f"{it}.yaml").read_text() for it in ("base", name)]
    assert shown == comments("".join(written)) != set()


def test_a_list_of_a_later_file_replaces_an_earlier_one():
    first = "a:\n  # why\n  b:\n    - 1\n  c: 1\n"

    assert merged(first, "a:\n  b:\n    - 2\n") == "a:\n  b:\n    - 2\n  c: 1\n"


@pytest.mark.parametrize("way", chart.WAYS)
def test_the_hub_s_image_is_that_of_the_chart_s_version(capsys, way):
    shown = printed(capsys, "values", way, "--chart", "4.3.5")

    hub = yaml.safe_load(shown)["hub"]
    tags = [it["image"].partition(":")[2] for it in hub.get("initContainers", [])]
    assert tags == ["4.3.5"] or hub["image"]["tag"] == "4.3.5-1"


@pytest.mark.parametrize("names", [(), *((it,) for it in VALUES)], ids=" ".join)
def test_commands_in_comments_are_for_the_same_version_of_the_chart(capsys, names):
    def without_why(text):  # wheels of the index are for the Python of one image
        return text.replace("as in the image of chart 4.4.0", "")

    assert "4.4.0" not in without_why(printed(capsys, "values", *names, "--chart", "4.3.5"))
