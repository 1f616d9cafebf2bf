"""`gpuspawner capacity`, on files."""

import time
from types import SimpleNamespace

import pytest

from gpuspawner.doctor import capacity
from gpuspawner.offers.grant import Grant
from gpuspawner.preflight.decision import (
    AfterPreemption,
    InQueue,
    Reason,
    Refuse,
    Start,
    UnknownRules,
    Wait,
)
from gpuspawner.preflight.kueue import PlaceInQueue
from gpuspawner.scaling.outlook import MayScaleUp, Source
from localcluster import Fleet, NodeGroup, fleet
from tests.unit.makers.files import Files, of_fleet, printed, using

GPUS = {"cpu": "32", "memory": "128Gi", "pods": "110", "nvidia.com/gpu": "4"}
CPUS = {"cpu": "16", "memory": "64Gi", "pods": "110"}
LARGE = Fleet(
    (
        NodeGroup("cpu", 600, CPUS, labels={"node.kubernetes.io/instance-type": "n2-standard-16"}),
        *(
            NodeGroup(
                f"gpu-{model}", 100, GPUS, labels={"nvidia.com/gpu.product": f"Model-{model}"}
            )
            for model in "abc"
        ),
        NodeGroup(
            "t4", 100, GPUS,
            labels={"nvidia.com/gpu.product": "Tesla-T4"},
            taints=(fleet.Taint("nvidia.com/gpu", "", "NoSchedule"),),
        ),
    )
)  # fmt: skip


def test_it_counts_the_gpus_of_each_accelerator_and_node(tmp_path, capsys):
    files = Files(tmp_path, of_fleet("on-premises"), [using("t4-0", 2)])

    assert files.ask("capacity", "--output", "json") == 0

    told = printed(capsys)
    t4, none = told["offers"]
    assert t4 == {
        "offer": "t4", "resource": "nvidia.com/gpu", "nodes": 2, "total": 4, "used": 2, "free": 2,
        "most_on_a_node": 2, "now": "starts",
    }  # fmt: skip
    assert none["offer"] == "a server without a GPU"
    used = {
        it["name"]: it["resources"].get("nvidia.com/gpu", {}).get("used") for it in told["nodes"]
    }
    assert used["t4-0"] == 2
    assert used["t4-1"] == 0


@pytest.mark.parametrize(
    ("decision", "told"),
    [
        (None, "refused: unusable"),
        (Wait(Grant(), MayScaleUp(Source.NODES)), "waits for a node"),
        (Refuse(Grant(), Reason.BUSY), "refused: busy"),
        (Start(Grant()), "starts"),
        (Start(Grant(), (AfterPreemption(),)), "starts"),
        (Start(Grant(), (UnknownRules(("?",)),)), "starts, unchecked"),
        (Start(Grant(), (InQueue(PlaceInQueue("gpus"), Start(Grant())),)), "its queue decides"),
    ],
)
def test_it_tells_what_a_start_would_get_now(decision, told):
    tried = SimpleNamespace(decision=decision)

    assert capacity._now(tried) == told


def test_only_nodes_that_have_its_gpus_count_for_an_offer(tmp_path, capsys):
    nodes = of_fleet("on-premises")
    other = next(it for it in nodes if it["metadata"]["name"] == "t4-1")
    del other["status"]["allocatable"]["nvidia.com/gpu"]
    files = Files(tmp_path, nodes)

    assert files.ask("capacity", "--output", "json") == 0

    t4, _ = printed(capsys)["offers"]
    assert (t4["nodes"], t4["total"]) == (1, 2)


def test_a_thousand_nodes_fit_a_screen_and_take_less_than_a_second(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    pods = [using(f"t4-{number}", number % 5, f"theirs-{number}") for number in range(100)]
    files = Files(tmp_path, of_fleet(LARGE), pods)

    started = time.process_time()
    assert files.ask("capacity") == 0
    took = time.process_time() - started

    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 160
    assert any(line.split()[:3] == ["100", "Tesla-T4", "ready"] for line in lines)
    assert any("4 on 20, 3 on 20, 2 on 20, 1 on 20, …" in line for line in lines)
    assert took < 1.0


def test_cordoned_nodes_and_unhealthy_gpus_stand_apart(tmp_path, capsys):
    nodes = of_fleet("on-premises")
    next(it for it in nodes if it["metadata"]["name"] == "t4-1")["spec"]["unschedulable"] = True
    files = Files(tmp_path, nodes)

    assert files.ask("capacity") == 0

    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["1", "Tesla-T4", "cordoned"] in [row[:3] for row in rows]
    assert ["1", "Tesla-T4", "ready"] in [row[:3] for row in rows]


def test_names_from_the_cluster_can_t_write_to_the_terminal(tmp_path, capsys):
    nodes = of_fleet("on-premises")
    nodes[0]["metadata"]["labels"]["nvidia.com/gpu.product"] = "\x1b[2J\r\nfree\u202e"
    files = Files(tmp_path, nodes)

    assert files.ask("capacity") == 0

    out = capsys.readouterr().out
    assert all(character == "\n" or character.isprintable() for character in out)
