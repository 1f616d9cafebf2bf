"""`gpuspawner explain`, on files."""

import pytest

from tests.unit.makers.files import T4, Files, of_fleet, printed, using


def test_it_says_why_each_node_has_no_room_and_what_users_read(tmp_path, capsys):
    taken = [using("t4-0", 2, "one"), using("t4-1", 2, "two")]
    files = Files(tmp_path, of_fleet("on-premises"), taken)

    assert files.ask("explain", "t4") == 1

    out = capsys.readouterr().out
    assert "t4: no node has room now; one will when other pods end.\n" in out
    assert "Users read: No NVIDIA T4 is free right now: all 4 are in use." in out
    assert "kube-scheduler says: 0/6 nodes are available: 2 Insufficient nvidia.com/gpu" in out
    assert "2  Insufficient nvidia.com/gpu: asks for 1, free 0 of 2" in out
    assert "when pods end  t4-0, t4-1" in out
    assert "no label nvidia.com/gpu.product=Tesla-T4" in out


def test_a_node_that_is_away_is_room_when_it_is_back(tmp_path, capsys):
    nodes = of_fleet("on-premises")
    for it in nodes:
        it["spec"]["unschedulable"] = it["metadata"]["name"] == "t4-1"
    files = Files(tmp_path, nodes, [using("t4-0", 2)])

    assert files.ask("explain", "t4") == 1
    told = "no node has room now; one will when other pods end or when a node is back."
    assert told in capsys.readouterr().out


def test_a_server_that_fits_names_its_nodes(tmp_path, capsys):
    files = Files(tmp_path, of_fleet("on-premises"), [using("t4-0", 1)])

    assert files.ask("explain", '{"accelerator": "t4", "gpus": 2}', "--output", "json") == 0

    told = printed(capsys)
    assert told["outcome"] == "fits"
    assert told["feasible"] == ["t4-1"]
    assert told["nodes"]["t4-0"] == ["Insufficient nvidia.com/gpu"]
    assert told["users_read"] == "There is room for this right now."


def test_a_pending_pod_is_explained_by_its_taints(tmp_path, capsys):
    files = Files(tmp_path, of_fleet("on-premises"), [using("", 1, "pending")])

    assert files.ask("explain", "pod", "jhub/pending") == 1

    out = capsys.readouterr().out
    assert "jhub/pending: no node can ever hold it, of 6 nodes." in out
    assert "4  untolerated taint nvidia.com/gpu:NoSchedule" in out


def test_a_pod_that_runs_has_a_node(tmp_path, capsys):
    files = Files(tmp_path, of_fleet("on-premises"), [using("t4-0", 1, "running")])

    assert files.ask("explain", "pod", "jhub/running") == 0
    assert capsys.readouterr().out == "jhub/running has a node: t4-0.\n"
    assert files.ask("explain", "pod", "jhub/running", "--output", "json") == 0
    assert printed(capsys) == {"outcome": "bound", "node": "t4-0"}


def test_an_answer_that_missing_files_decide_is_unknown(tmp_path):
    files = Files(tmp_path, of_fleet("on-premises"))
    (tmp_path / "deviceclasses.json").unlink()
    files.configuration.write_text(
        files.configuration.read_text().replace('"counts"', '"resource": "x.com/gpu", "counts"')
    )

    assert files.ask("explain", "t4") == 2


@pytest.mark.parametrize(("declared", "status"), [("", 2), ("['packer']", 0)])
def test_files_are_judged_by_the_schedulers_that_the_configuration_trusts(
    tmp_path, declared, status
):
    files = Files(tmp_path, of_fleet("on-premises"))
    trusts = f"c.GPUSpawner.default_filter_schedulers = {declared}" if declared else ""
    files.configuration.write_text(f"{T4}c.KubeSpawner.scheduler_name = 'packer'\n{trusts}\n")

    assert files.ask("explain", "t4") == status


def test_files_may_hold_what_autoscalers_say(tmp_path, capsys):
    files = Files(tmp_path, of_fleet("single"))
    pool = {
        "metadata": {"name": "t4"},
        "spec": {"template": {
            "metadata": {"labels": {"nvidia.com/gpu.product": "Tesla-T4"}},
            "spec": {"requirements": []}}},
    }  # fmt: skip
    files.put("nodepools", [pool])

    assert files.ask("explain", "t4") == 1
    assert "Users read: No machine has room for your server right now. The cluster may add one" in (
        capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("question", "told"),
    [
        (("k80",), "'k80' isn't offered"),
        (("{",), "aren't JSON"),
        (('{"a":' * 100_000,), "aren't JSON"),
        (("pod", "jhub/pendin"), "did you mean 'jhub/pending'?"),
        (("a", "b", "c"), "pod NAMESPACE/NAME"),
    ],
)
def test_a_question_without_an_answer_says_why(tmp_path, capsys, question, told):
    files = Files(tmp_path, of_fleet("on-premises"), [using("", 1, "pending")])

    assert files.ask("explain", *question) == 3
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "told"), [("nodse", "did you mean 'nodes'?"), ("pods", "expected one object")]
)
def test_a_file_that_isn_t_kubectl_s_is_refused(tmp_path, capsys, name, told):
    files = Files(tmp_path, of_fleet("single"))
    (tmp_path / f"{name}.json").write_text('{"items": 1}')

    assert files.ask("explain", "t4") == 3
    assert told in capsys.readouterr().err


def test_it_names_the_setting_that_asks_every_server_s_node_for_a_label(tmp_path, capsys):
    files = Files(tmp_path, of_fleet("on-premises"))
    with files.configuration.open("a") as configuration:
        configuration.write('c.KubeSpawner.node_selector = {"pool": "cpu"}\n')

    assert files.ask("explain", "t4") == 1
    asks = "no label pool=cpu, for which KubeSpawner.node_selector (in the chart, singleuser."
    assert asks in capsys.readouterr().out


def test_a_class_that_makes_no_spawner_is_told_in_one_line(tmp_path, capsys):
    files = Files(tmp_path, of_fleet("on-premises"))
    files.configuration.write_text(
        f"""{T4}
from gpuspawner import GPUSpawner
class OfAccounts(GPUSpawner):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.account = {{}}[self.user.name]
c.JupyterHub.spawner_class = OfAccounts
"""
    )

    assert files.ask("explain", "t4") == 3

    said = capsys.readouterr().err
    assert said == "gpuspawner explain: OfAccounts: KeyError('gpuspawner')\n"
