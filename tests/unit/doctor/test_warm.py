"""`gpuspawner warm`: placeholders that the scheduler places like servers, and ends for them."""

import pytest
import yaml

from tests.unit.makers.files import T4, Files, of_fleet, printed

LOW = {"metadata": {"name": "jhub-user-placeholder-priority"}, "value": -10}
SMALL = """
c.KubeSpawner.mem_guarantee = "2G"
c.KubeSpawner.cpu_guarantee = 0.5
c.KubeSpawner.scheduler_name = "jhub-user-scheduler"
c.KubeSpawner.node_affinity_required = [
    {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
c.KubeSpawner.common_labels = {"app": "jupyterhub"}
"""


@pytest.fixture
def files(tmp_path):
    made = Files(tmp_path, of_fleet("on-premises"))
    made.put("priorityclasses", [LOW])
    return made


def test_each_placeholder_asks_for_what_a_server_does_in_the_same_places(files, capsys):
    files.configuration.write_text(T4 + SMALL)

    assert files.ask("warm", "--servers", "5", "--profile", "t4") == 0

    made = yaml.safe_load(capsys.readouterr().out)
    assert made["kind"] == "Deployment"
    assert made["metadata"] == {"name": "gpuspawner-warm-t4", "namespace": "jhub"}
    assert made["spec"]["replicas"] == 5
    pod = made["spec"]["template"]
    assert pod["metadata"]["labels"] == made["spec"]["selector"]["matchLabels"]
    assert "app" not in pod["metadata"]["labels"]  # it isn't one of the hub's pods
    [container] = pod["spec"]["containers"]
    assert container["resources"] == {
        "requests": {"cpu": "500m", "memory": "2147483648", "nvidia.com/gpu": "1"},
        "limits": {"nvidia.com/gpu": "1"},
    }
    assert pod["spec"]["priorityClassName"] == "jhub-user-placeholder-priority"
    assert pod["spec"]["terminationGracePeriodSeconds"] == 0
    assert pod["spec"]["schedulerName"] == "jhub-user-scheduler"
    assert pod["spec"]["nodeSelector"] == {"nvidia.com/gpu.product": "Tesla-T4"}
    assert pod["spec"]["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    assert "zone" in str(pod["spec"]["affinity"]["nodeAffinity"])


def test_servers_take_the_room_of_placeholders_and_policies_don_t_count_them(files, capsys):
    limited = {"course": {"groups": ["g"], "gpus_per_group": 4}}
    files.configuration.write_text(f"{T4}c.GPUSpawner.policies = {limited!r}\n")
    assert files.ask("warm", "--profile", "t4", "--output", "json") == 0
    template = printed(capsys)["spec"]["template"]
    spec = {**template["spec"], "priority": LOW["value"]}
    files.put("pods", [_running(template, spec, at) for at in range(4)])

    status = files.ask(
        "capacity", "--servers", "4", "--profile", "t4", "--group", "g", "--output", "json"
    )

    told = printed(capsys)
    assert (status, told["fits_now"], told["preempted"], told["limits"]) == (0, 4, 4, [])


def _running(template, spec, at):
    metadata = {**template["metadata"], "name": f"warm-{at}", "namespace": "jhub"}
    bound = {**spec, "nodeName": f"t4-{at % 2}"}
    return {"metadata": metadata, "spec": bound, "status": {"phase": "Running"}}


def test_options_as_json_name_the_deployment_by_the_accelerator(files, capsys):
    options = '{"accelerator": "t4", "gpus": 2}'

    assert files.ask("warm", "--profile", options, "--output", "json") == 0

    made = printed(capsys)
    assert made["metadata"]["name"] == "gpuspawner-warm-t4"
    [container] = made["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "2"}


def test_a_long_name_of_a_profile_makes_a_label_that_kubernetes_takes(files, capsys):
    limits = {"extra_resource_limits": {"nvidia.com/gpu": "1"}}
    names = [f"Deep learning with PyTorch 2.9 and CUDA 13 on one NVIDIA T4, {it}" for it in "ab"]
    listed = [{"display_name": it, "slug": it, "kubespawner_override": limits} for it in names]
    files.configuration.write_text(f"c = get_config()\nc.KubeSpawner.profile_list = {listed}")

    made = []
    for it in names:
        assert files.ask("warm", "--profile", it, "--output", "json") == 0
        made.append(printed(capsys))

    kinds = {it["spec"]["selector"]["matchLabels"]["gpuspawner-warm"] for it in made}
    deployments = {it["metadata"]["name"] for it in made}
    assert len(kinds) == len(deployments) == 2
    assert max(map(len, kinds | deployments)) <= 63


@pytest.mark.parametrize(
    ("classes", "arguments", "told"),
    [
        ([], ("--profile", "t4"), "the cluster has 0 such PriorityClasses; set scheduling"),
        (
            [LOW],
            ("--profile", "t4", "--priority-class", "lower"),
            "has 0 such PriorityClasses; set",
        ),
        (
            [LOW],
            ("--profile", "t4", "--priority-class", "jhub-user-placeholder"),
            "has 0 such PriorityClasses (did you mean 'jhub-user-placeholder-priority'?); set",
        ),
        (
            [LOW, {**LOW, "metadata": {"name": "b-user-placeholder-priority"}}],
            ("--profile", "t4"),
            "2 such PriorityClasses: b-user-placeholder-priority or jhub-user-placeholder-priority",
        ),
        (
            [{**LOW, "value": 0}],
            ("--profile", "t4"),
            "and that of a server 0, so servers would not",
        ),
        ([LOW], (), "name an accelerator or a profile with --profile"),
        ([LOW], ("--profile", "t5"), "'t5' isn't offered"),
    ],
)
def test_placeholders_that_would_not_make_way_are_not_printed(
    files, capsys, classes, arguments, told
):
    files.put("priorityclasses", classes)

    assert files.ask("warm", *arguments) == 3

    printed = capsys.readouterr()
    assert printed.out == ""
    assert told in printed.err


def test_no_placeholders_are_printed_for_servers_that_may_not_preempt_them(files, capsys):
    mine = {"metadata": {"name": "mine"}, "value": 5, "preemptionPolicy": "Never"}
    files.put("priorityclasses", [LOW, mine])
    files.configuration.write_text(f'{T4}c.KubeSpawner.priority_class_name = "mine"\n')

    assert files.ask("warm", "--profile", "t4") == 3

    printed = capsys.readouterr()
    assert printed.out == ""
    assert "servers have the preemptionPolicy Never" in printed.err
