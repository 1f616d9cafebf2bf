"""What the doctor says of labels and resources that servers need and nodes lack."""

import pytest
from msgspec.structs import replace

from gpuspawner.doctor.checks import offers
from gpuspawner.doctor.checks.causes import cause
from gpuspawner.doctor.checks.labels import Selectors
from gpuspawner.gates.what_if import OfferedServer, Tried
from gpuspawner.messages.administrators import Severity
from gpuspawner.offers.grant import Grant
from gpuspawner.preflight.decision import Apart, Reason, Refuse, TaintedNodes, rejected
from gpuspawner.preflight.kueue import Closed, Never, WhyClosed
from gpuspawner.preflight.rejection import Of, Rejection
from gpuspawner.scheduling import ClusterState
from tests.unit.makers.files import Files, tried_on
from tests.unit.makers.worlds import GPU, labelled, node, proposal

OFF = "NoSchedule"
GKE = "cloud.google.com/gke-accelerator"
T4 = {"display_name": "T4", "node_selector": {GKE: "nvidia-tesla-t4"}}
OF_GPUS, MASTER = (
    {"key": it, "effect": OFF} for it in (GPU, "node-role.kubernetes.io/control-plane")
)
P100 = {"display_name": "P100", "node_selector": {GKE: "nvidia-tesla-p100"}}
POOL, PURPOSE = {"pool": "cpu"}, {"hub.jupyter.org/node-purpose": "user"}
IN_SELECTOR = "KubeSpawner.node_selector (in the chart, singleuser.nodeSelector)"
IN_AFFINITY = (
    "KubeSpawner.node_affinity_required (in the chart, singleuser.extraNodeAffinity.required and "
    "scheduling.userPods.nodeAffinity.matchNodePurpose)"
)
USER = {"key": "hub.jupyter.org/node-purpose", "operator": "In", "values": ["user"]}
MATCHING = {"matchExpressions": [USER]}


async def troubles(folder, *nodes, kube=None, **ours):
    Files(folder, nodes)
    hub, tried = await tried_on(folder, kube=kube, **ours)
    return [it for it in offers.check(hub, tried, {}) if it.id != "offer"]


def gpus(labels, **amounts):
    made = labelled(node("n", 0), labels)
    for kind in ("capacity", "allocatable"):
        made["status"].setdefault(kind, {}).update({GPU: "0", **amounts})
    return made


def test_what_the_api_server_rejects_of_all_servers_is_one_finding():
    """Each dry run has a pod of its own name."""
    why = "spec.tolerations[0].operator: Unsupported value"

    def found(text):
        no = rejected(Grant(), Rejection(Of.POD, None, text))
        return cause(ClusterState(), Tried(OfferedServer("t4", "", {}), decision=no), Selectors({}))

    one, two = (found(f'Pod "jupyter-gpuspawner-{it}" is invalid: {why}') for it in "ab")

    assert one == two
    assert one.text == f"The API server rejects {{servers}}: {why}."


@pytest.mark.parametrize("there", [f"{GPU}.shared", "nvidia.com/mig-1g.5gb"])
async def test_a_resource_of_which_nodes_have_none_is_no_advice(tmp_path, there):
    nodes = gpus({"gpu": "t4"}, **{there: "4"})
    offered = {"t4": {"display_name": "T4", "node_selector": {"gpu": "t4"}}}

    [finding] = await troubles(tmp_path, nodes, accelerators=offered)

    assert finding.id == "no-resource"
    assert finding.advice.replace("'", "") == f"Write {there} in GPUSpawner.accelerators[t4]."


def of_profile(gpus, **override):
    limits = {"extra_resource_limits": {GPU: str(gpus)}, **override}
    return {"profile_list": [{"display_name": "T4", "kubespawner_override": limits}]}


def of(found, id_):
    [finding] = [it for it in found if it.id == id_]
    return finding


@pytest.mark.parametrize("offered", [{"t4": T4, "p100": P100}, {"p100": P100}])
async def test_the_label_of_another_model_is_no_advice(tmp_path, offered):
    t4 = labelled(node("n", 1), T4["node_selector"])

    found = await troubles(tmp_path, t4, accelerators=offered, autoscaling="always")
    finding = of(found, "unknown-pool")

    assert "nvidia-tesla-t4" not in finding.text + finding.advice
    assert finding.severity is Severity.FINE  # a pool at zero is no mistake
    assert "declare its scale_up" in finding.advice


async def test_what_another_offer_selects_is_meant_by_nobody_else(tmp_path):
    nodes = labelled(node("n", 1), {"gpu": "large"})
    offered = {
        name: {"display_name": name, "node_selector": {"gpu": name}} for name in ("large", "larger")
    }

    finding = of(await troubles(tmp_path, nodes, accelerators=offered), "no-node")

    assert finding.text == "No node has the label gpu=larger, which larger needs."
    assert "Write" not in finding.advice


async def test_a_slip_in_a_label_is_still_named(tmp_path):
    nodes = labelled(node("n", 1), T4["node_selector"])
    slip = {"t4": {"display_name": "T4", "node_selector": {GKE: "nvidia-telsa-t4"}}}

    finding = of(await troubles(tmp_path, nodes, accelerators=slip), "no-node")

    assert f"Write {GKE}=nvidia-tesla-t4 in GPUSpawner.accelerators['t4']" in finding.advice


@pytest.mark.parametrize("autoscaling", ["none", "always"])
@pytest.mark.parametrize(
    ("kube", "label", "setting"),
    [
        ({"node_selector": POOL}, "pool=cpu", IN_SELECTOR),
        (
            {"node_affinity_required": [MATCHING]},
            "hub.jupyter.org/node-purpose=user",
            IN_AFFINITY,
        ),
    ],
)
async def test_a_setting_that_keeps_servers_off_all_gpus_is_named_with_its_label(
    tmp_path, kube, label, setting, autoscaling
):
    t4 = labelled(node("gpu", 1), T4["node_selector"])
    core = labelled(node("core", 0), {**POOL, **PURPOSE})
    offered = {"t4": T4}

    found = await troubles(
        tmp_path, t4, core, kube=kube, accelerators=offered, autoscaling=autoscaling
    )
    finding = of(found, "no-node")

    assert finding.text == (
        f"Nobody can start t4: no node with its other labels (gpu) has the label {label}, for "
        f"which {setting} asks."
    )
    assert finding.advice.endswith(f"or change {setting}.")


async def test_a_setting_that_no_node_matches_is_named(tmp_path):
    found = await troubles(
        tmp_path, labelled(node("gpu", 1), T4["node_selector"]), kube={"node_selector": POOL},
        accelerators={"t4": T4}, autoscaling="none",
    )  # fmt: skip

    assert IN_SELECTOR in of(found, "no-node").text


def tried(queue):
    server = OfferedServer("a100", "GPUSpawner.accelerators['a100']", {})
    return Tried(server, decision=Refuse(Grant(), Reason.NOT_ADMITTED, queue=queue))


def test_what_a_queue_could_never_give_is_no_server_in_use():
    found = cause(ClusterState(), tried(Never("team", "cpu", asked=8000, most=4000)), Selectors({}))

    assert found is not None
    assert found.worst is Severity.ERROR
    assert "the LocalQueue team could never give 8 cores" in found.text
    assert found.text.endswith("but at most 4 cores.")


def test_a_queue_that_takes_nobody_is_no_server_in_use():
    closed = tried(Closed("team", WhyClosed.STOPPED))

    assert cause(ClusterState(), closed, Selectors({})) is None
    assert offers._fine([closed]).text == "Their queue in Kueue takes nobody right now: a100."


async def test_a_taint_that_is_tolerated_by_its_value_is_not_named(tmp_path):
    nodes = [
        node(f"{it}-0", gpus, taints=[{"key": "dedicated", "value": it, "effect": OFF}])
        for it, gpus in (("web", 0), ("gpu", 1))
    ]
    tolerated = {"key": "dedicated", "operator": "Equal", "value": "gpu", "effect": OFF}

    [found] = await troubles(tmp_path, *nodes, kube=of_profile(2, tolerations=[tolerated]))

    assert found.id == "too-large"


BIG = node("gpu-0", 8, taints=[OF_GPUS])


@pytest.mark.parametrize(
    ("others", "asked"),
    [
        ([*(node(f"m-{it}", 0, taints=[MASTER]) for it in range(2)), node("cpu-0", 0)], 1),
        ([node("gpu-1", 1)], 4),
        ([node("gpu-1", 0)], 4),
    ],
    ids=["too few", "too small", "none"],
)
async def test_larger_nodes_behind_a_taint_are_not_told_as_too_small(tmp_path, others, asked):
    [found] = await troubles(tmp_path, *others, BIG, kube=of_profile(asked))

    assert found.id == "untolerated-taint"
    assert f"the taint {GPU}:NoSchedule of 1 node (gpu-0)" in found.text
    assert found.advice.startswith("Add to the tolerations of KubeSpawner.profile_list: ")


def test_a_taint_is_not_named_where_only_volumes_keep_the_server_off_another_node():
    tainted = node("n", 1, taints=[{"key": "team", "effect": OFF}])
    behind = (TaintedNodes("team", "", OFF, nodes=1, large=1),)
    no = Refuse(
        Grant(),
        Reason.IMPOSSIBLE,
        candidates=1,
        taints=behind,
        apart=Apart(("b",), ("a",), are_zones=True),
        scheduler_message="0/2 nodes are available: 1 node(s) didn't match PersistentVolume's "
        "node affinity.",
    )
    made = replace(tried(Never("", "", 0, 0)), decision=no, proposal=proposal("a"))

    found = cause(ClusterState.from_objects(nodes=[tainted], pods=[]), made, Selectors({}))

    assert found is not None
    assert found.id == "impossible"


async def test_a_server_without_gpus_is_not_sent_to_the_nodes_of_others(tmp_path):
    small = node("cpu-0", 0)
    small["status"] = {it: {"cpu": "8", "memory": "8Gi", "pods": "9"} for it in small["status"]}

    found = await troubles(
        tmp_path, node("gpu-0", 8, taints=[MASTER]), small,
        kube=of_profile(0, mem_guarantee="100G"),
    )  # fmt: skip

    assert "too-large" in {it.id for it in found}
    assert "untolerated-taint" not in {it.id for it in found}


async def test_too_large_is_said_of_the_nodes_that_the_server_selects(tmp_path):
    t4, p100 = (labelled(node(name, count), it["node_selector"])
                for name, count, it in (("a", 2, T4), ("b", 8, P100)))  # fmt: skip
    offered = {"t4": {**T4, "counts": [4]}}

    found = of(await troubles(tmp_path, t4, p100, accelerators=offered), "too-large")

    assert found.text == (
        f"t4 (its nodes have at most 2) needs 4 × {GPU}, more than any of its nodes has."
    )


async def test_advice_about_discovered_gpus_names_a_setting(tmp_path):
    tainted = labelled(node("gpu-0", 1), T4["node_selector"])
    tainted["spec"] = {"taints": [{"key": "team", "effect": OFF}]}

    found = of(await troubles(tmp_path, tainted, autoscaling="none"), "untolerated-taint")

    assert "tolerations of GPUSpawner.accelerators (empty, so the hub reads the" in found.advice
