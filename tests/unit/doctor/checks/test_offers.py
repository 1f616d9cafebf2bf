"""What the doctor says of servers that nobody can start."""

import pytest
from tornado import web

from gpuspawner.doctor.checks import devices, offers
from gpuspawner.gates.what_if import NOBODY, asked_for
from gpuspawner.messages.administrators import Severity
from gpuspawner.policies.owner import Owner
from tests.unit.makers import kueue_worlds
from tests.unit.makers.files import Files, tried_on
from tests.unit.makers.profile_lists import OWN_IMAGE
from tests.unit.makers.worlds import GPU, labelled, node

OFFERED = {"t4": {"display_name": "T4", "node_selector": {"gpu": "t4"}}}


async def found(folder, *nodes, counts=None, others=None, volumes=None):
    files = Files(folder, nodes)
    for kind, it in (others or {}).items():
        files.put(kind, [dict(it)])
    offered = {"t4": {**OFFERED["t4"], "counts": counts}} if counts else OFFERED
    hub, tried = await tried_on(folder, kube={"volumes": volumes or []}, accelerators=offered)
    ill = devices.ill(hub.state)
    return [*devices.check(ill, hub.state, tried), *offers.check(hub, tried, ill)]


async def told_of(folder, owner=NOBODY, **settings):
    return list(offers.check(*await tried_on(folder, owner, **settings), {}))


async def test_a_cluster_without_nodes_is_one_finding_for_all_servers(tmp_path):
    (finding,) = await found(tmp_path)

    assert finding.id == "no-node"
    assert finding.text == (
        "The cluster has no nodes, so nobody can start t4 or a server without a GPU."
    )


@pytest.mark.parametrize(
    ("strategy", "counts", "severity", "give"),
    [
        ("mps", [2], Severity.ERROR, "gives"),
        ("mps", [1, 2], Severity.WARNING, "gives"),
        ("time-slicing", [2], Severity.WARNING, "may give"),
    ],
)
async def test_several_shares_of_a_gpu_are_named_as_the_request_s_fault(
    tmp_path, strategy, counts, severity, give
):
    labels = {"gpu": "t4", f"{GPU}.sharing-strategy": strategy}

    told = await found(tmp_path, labelled(node("n", 4), labels), counts=counts)

    [finding] = [it for it in told if it.id == "one-share"]
    assert finding.severity is severity
    which = "t4" if counts == [2] else "t4 with 2 GPUs"
    assert finding.text == (
        f"{which} asks for several shares of a GPU, but the device plugin of 1 node (n) {give} a "
        "container only one."
    )
    assert finding.advice.startswith("Ask for one in GPUSpawner.accelerators['t4'].")
    assert "failRequestsGreaterThanOne" in finding.advice


@pytest.mark.parametrize(
    ("free", "said"),
    [
        (2, "Users can start a server now."),
        (1, "a server (its nodes have at most 1) needs 2"),
    ],
)
async def test_the_one_server_of_a_hub_without_a_choice_is_checked(tmp_path, free, said):
    Files(tmp_path, [node("n", free)])
    hub, tried = await tried_on(tmp_path, kube={"extra_resource_limits": {GPU: "2"}})

    [finding] = offers.check(hub, tried, {})

    assert said in finding.text
    assert asked_for(hub, "null") == tried[0].server.options


def a_queue(**spec):
    local = kueue_worlds.queue("default")
    place = {**local["metadata"], "namespace": "default"}
    return {
        "localqueues": {**local, "metadata": place},
        "clusterqueues": kueue_worlds.pool("team-a", {"nominalQuota": "8"}, **spec),
        "resourceflavors": kueue_worlds.flavor(),
    }


@pytest.mark.parametrize("checks", [None, ["nodes"]])
async def test_of_a_server_in_a_queue_nobody_says_that_it_can_start_now(tmp_path, checks):
    t4 = labelled(node("n", 4), {"gpu": "t4"})

    told = await found(tmp_path, t4, others=a_queue(admissionChecks=checks))

    assert [it.text for it in told if it.id == "offer"] == [
        "Kueue decides when t4 can start.",
        "Kueue decides when a server without a GPU can start.",
    ]
    assert {it.id for it in told} == {"offer"}


@pytest.mark.parametrize("configured", ["default", None, ""])
async def test_of_an_imagined_user_s_namespace_nobody_says_what_its_queue_does(
    tmp_path, configured
):
    files = Files(tmp_path, [labelled(node("n", 4), {"gpu": "t4"})])
    for kind, it in a_queue().items():
        files.put(kind, [dict(it)])
    ours = {"accelerators": OFFERED, "kueue_queue": configured}

    for owner, is_untold in ((NOBODY, configured != ""), (Owner("ann"), False)):
        told = await told_of(tmp_path, owner, kube={"enable_user_namespaces": True}, **ours)
        assert ["own queue" in it.text for it in told] == [is_untold, is_untold]


async def test_that_a_node_is_away_is_told_of_servers_in_a_queue_too(tmp_path):
    away = labelled(node("n", 4, unschedulable=True), {"gpu": "t4"})

    told = await found(tmp_path, away, others=a_queue())

    assert "nodes-away" in {it.id for it in told}


async def test_of_nodes_that_are_away_only_those_are_named_that_could_hold_the_server(tmp_path):
    small, tainted = (labelled(node(name, 1), {"gpu": "t4"}) for name in ("small", "tainted"))
    tainted["spec"]["taints"] = [{"key": "team", "value": "a", "effect": "NoSchedule"}]
    away = labelled(node("away", 4, unschedulable=True), {"gpu": "t4"})

    told = await found(tmp_path, small, tainted, away, counts=[2])

    [text] = [it.text for it in told if it.id == "nodes-away"]
    assert text == (
        "Nobody can start t4: there is room only on 1 node (away), now cordoned, not ready, or "
        "without healthy GPUs or volume drivers."
    )


@pytest.mark.parametrize("is_queued", [True, False])
async def test_a_node_that_is_away_is_named_whatever_else_is_made_of_the_server(
    tmp_path, is_queued
):
    """Kueue adds tolerations, and a claim that isn't there yet is left aside."""
    away = labelled(node("away", 4, unschedulable=True), {"gpu": "t4"})
    queue, volumes = None, [{"name": "x", "persistentVolumeClaim": {"claimName": "not-yet"}}]
    if is_queued:
        away["spec"]["taints"] = [{"key": "team", "value": "a", "effect": "NoSchedule"}]
        flavor = kueue_worlds.flavor(tolerations=[{"key": "team", "operator": "Exists"}])
        queue, volumes = {**a_queue(), "resourceflavors": flavor}, []

    told = await found(tmp_path, away, others=queue, volumes=volumes)

    [text] = [it.text for it in told if it.id == "nodes-away"]
    assert "there is room only on 1 node (away), now cordoned" in text


async def test_a_profile_of_which_no_pod_can_be_made_is_unusable_and_others_are_tried(tmp_path):
    broken = {"display_name": "A", "kubespawner_override": {"tolerations": {"key": "gpu"}}}
    Files(tmp_path, [node("n", 1)])
    profiles = [broken, {"display_name": "B"}]

    told = await told_of(tmp_path, kube={"profile_list": lambda _: profiles})

    assert [it.id for it in told if it.severity is Severity.ERROR] == ["unusable"]
    assert told[0].text == (
        "Nobody can start the profile “A”: KubeSpawner can't make a pod of its settings: "
        "AttributeError(\"Expected object of type 'dict' (or 'V1Toleration') but got 'str'.\")."
    )
    assert "Users can start the profile “B”" in told[1].text


def of_team(spawner):
    return str({"ann": "a"}[spawner.user.name])


def forbid(_):
    raise web.HTTPError(403, "you have no team")


@pytest.mark.parametrize("fails", [of_team, forbid])
@pytest.mark.parametrize(
    ("owner", "severity"), [(NOBODY, Severity.WARNING), (Owner("bob"), Severity.ERROR)]
)
async def test_code_that_fails_in_one_profile_is_an_error_only_of_a_real_user(
    tmp_path, fails, owner, severity
):
    team = {"display_name": "A", "kubespawner_override": {"environment": {"TEAM": fails}}}
    broken = {"display_name": "C", "kubespawner_override": {"tolerations": {"key": "gpu"}}}
    Files(tmp_path, [node("n", 1)])

    told = await told_of(
        tmp_path, owner, kube={"profile_list": [{"display_name": "B"}, team, broken]}
    )

    assert [(it.id, it.severity) for it in told] == [
        ("own-code", severity),
        ("unusable", Severity.ERROR),
        ("offer", Severity.FINE),
    ]
    assert "can't check the profile “A”, because a function or class of yours" in told[0].text


async def test_a_profile_whose_image_is_written_in_is_tried_without_it(tmp_path):
    Files(tmp_path, [labelled(node("n", 1), {"gpu": "a100"})])

    told = await told_of(tmp_path, kube={"profile_list": [OWN_IMAGE]})

    assert [it.text for it in told if it.severity is Severity.ERROR] == []
    assert "Users can start the profile “Your image”" in told[0].text


T4_PROFILE = {
    "display_name": "T4",
    "kubespawner_override": {
        "extra_resource_limits": {GPU: "1"},
        "node_selector": {"gpu": "t4"},
    },
}


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ({"accelerators": OFFERED}, "GPUSpawner.accelerators"),
        ({"kube": {"profile_list": [T4_PROFILE]}}, "KubeSpawner.profile_list"),
    ],
)
async def test_other_gpus_can_be_offered_where_the_hub_has_its_offers(tmp_path, settings, place):
    """A hub with accelerators and profiles doesn't start."""
    Files(tmp_path, [labelled(node(name, 1), {"gpu": name}) for name in ("t4", "a100")])

    told = await told_of(tmp_path, **settings)

    [finding] = [it for it in told if it.id == "not-offered"]
    assert "reaches 1 node with GPUs (a100)" in finding.text
    assert finding.advice == f"Offer them in {place}, if users should have them."


NO_VOLUME = (
    "Nobody can start t4: GPUSpawner.accelerators['t4']: volume_mounts names 'dta', but the pod "
    "has no such volume"
)


@pytest.mark.parametrize(("mounted", "unusable"), [("data", []), ("dta", [NO_VOLUME])])
async def test_a_mount_of_no_volume_is_unusable_and_one_of_kubespawner_s_is_not(
    tmp_path, mounted, unusable
):
    data = {"name": "data", "emptyDir": {}}
    mounting = {**OFFERED["t4"], "volume_mounts": [{"name": mounted, "mountPath": "/data"}]}
    Files(tmp_path, [labelled(node("n", 1), {"gpu": "t4"})])

    told = await told_of(tmp_path, accelerators={"t4": mounting}, volumes=[data])

    assert [it.text for it in told if it.id == "unusable"] == unusable


ILL = labelled(node("n", 0), {"gpu": "t4", "nvidia.com/gpu.product": "Tesla-T4"})
DRIVER = {"metadata": {"name": "gpu.nvidia.com"}, "spec": {"extendedResourceName": GPU}}


@pytest.mark.parametrize(
    ("others", "error"),
    [
        ({}, ["no-gpus-on-node"]),
        (a_queue(), ["no-gpus-on-node"]),
        ({"deviceclasses": DRIVER}, ["unchecked"]),
    ],
    ids=["alone", "in a queue", "by a claim"],
)
async def test_a_node_that_reports_no_gpus_keeps_nobody_off_who_may_get_one_by_a_claim(
    tmp_path, others, error
):
    told = await found(tmp_path, ILL, others=others)

    assert "no-gpus-on-node" in {it.id for it in told}
    assert [it.id for it in told if it.severity is Severity.ERROR] == error
