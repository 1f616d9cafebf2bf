"""The log has one block that tells what the hub found, however long the first list takes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import kubespawner
import pytest
from aiohttp import web
from traitlets.config import Config

from gpuspawner.cluster.autoscaler_objects import STATUS
from gpuspawner.cluster.client import Client
from gpuspawner.cluster.kinds import NODES, PODS, SCALING_KINDS, ObjectKind
from gpuspawner.cluster.view import ClusterView
from gpuspawner.configuration import check
from gpuspawner.gates import startup_report
from gpuspawner.gates.startup_report import samples, try_all
from gpuspawner.kube.autoscaling import NodePool
from gpuspawner.kube.objects import Undecodable, strict_convert
from gpuspawner.messages.administrators import GPUS_FOR_ALL
from gpuspawner.offers import inventory
from gpuspawner.preflight.dry_runs import DryRun, DryRuns
from gpuspawner.runtime import Runtime
from gpuspawner.scheduling.rules import DEFAULT_RULES
from tests.unit.makers.scripted import FAST, ScriptedServer, Step, failure, page, preferring, watch
from tests.unit.makers.surveyed import node
from tests.waiting import UNIT_PATIENCE as PATIENCE

T4 = {"node_selector": {"gpu": "t4"}, "scale_up": {"max_nodes": 3, "minutes": 4}}
PROFILE: dict[str, Any] = {
    "display_name": "Tesla",
    "kubespawner_override": {
        "node_selector": {"gpu": "t4"},
        "extra_resource_limits": {"nvidia.com/gpu": "1"},
    },
}
CLAIMS = ObjectKind("PersistentVolumeClaim", "/api/v1/persistentvolumeclaims", required=False)
ALLOWED = {"start_timeout": 300}


@dataclass
class Reporting:
    """A report about a scripted cluster."""

    caplog: pytest.LogCaptureFixture
    task: asyncio.Task[None]

    @property
    def said(self) -> list[tuple[str, str]]:
        """The level and the text of each record of the report in the log."""
        records = (it for it in self.caplog.records if it.name == startup_report.__name__)
        return [(it.levelname, it.message) for it in records]

    async def ended(self) -> list[tuple[str, str]]:
        """Wait until everything is logged."""
        await asyncio.wait_for(self.task, PATIENCE)
        return self.said


@asynccontextmanager
async def reporting(
    caplog: pytest.LogCaptureFixture,
    *schedulers: str,
    kinds: tuple[ObjectKind, ...] = (NODES, PODS),
    tornado_settings: Mapping[str, Any] | None = None,
    asked_by: Client | None = None,
    traits: Mapping[str, Any],
    **scripts: list[Step],
) -> AsyncIterator[Reporting]:
    caplog.set_level(logging.INFO, "gpuspawner")
    settings = check(Config(GPUSpawner={**ALLOWED, **traits}))
    two = page(node("a", 4), node("b", 2))
    server = ScriptedServer(
        **{"nodes": [two, watch(hold=True)], "pods": [page(), watch(hold=True)], **scripts}
    )
    async with server.serving():
        followed = tuple(kind for kind in SCALING_KINDS if kind.plural in scripts)
        view = ClusterView(server.configuration, kinds, FAST, DEFAULT_RULES, followed)
        for kind in SCALING_KINDS:
            view.autoscalers.mark_known(kind.name)
        runtime = Runtime(settings, view)
        runtime.client = Client(server.configuration)
        if asked_by is not None:
            runtime.dry_runs = DryRuns(DryRun(asked_by, PATIENCE))
        view.start()
        task = startup_report.begin(runtime, settings, schedulers, tornado_settings or {})
        try:
            yield Reporting(caplog, task)
        finally:
            task.cancel()
            await runtime.view.stop()
            await runtime.client.close()


async def test_one_block_tells_what_was_found(caplog) -> None:
    async with reporting(caplog, "", traits={"accelerators": {"t4": T4}}) as report:
        [(level, block)] = await report.ended()

    assert level == "INFO"
    assert block.splitlines() == [
        "gpuspawner found:",
        "    preflight: enforce",
        "    scheduler: default-scheduler, Kubernetes' own",
        "    nodes: 2, 2 with GPUs",
        "    t4: 2 nodes, 6 of 6 GPUs free",
        "    t4 can grow to 3 nodes (scale_up)",
    ]


SHARED = {"groups": ["a"], "gpus_per_group": {"t4": 2, "all": 3}, "gpus_per_server": 1}


@pytest.mark.parametrize(
    ("traits", "told"),
    [
        ({"extra_resource_limits": {"nvidia.com/gpu": "1"}}, GPUS_FOR_ALL),
        (
            {"policies": {"a": SHARED, "b": {"cpu_per_user": 1, "lifetime": "8h"}}},
            "policies: 2; for cpu_per_user, gpus_per_group, the hub counts the pods in jhub",
        ),
        ({"policies": {"a": {"gpus_per_server": 1}}}, "policies: 1"),
        (
            {"policies": lambda _: {}, "enable_user_namespaces": True},
            "policies: made by a function; for limits, the hub counts the pods in all namespaces",
        ),
        (
            {"accelerators": {"t4": {**T4, "scale_up": {"max_nodes": 1, "minutes": 4}}}},
            "t4 can grow to 1 node (scale_up)",
        ),
        ({"profile_list": [PROFILE]}, "Tesla: 2 nodes, 6 of 6 GPUs free"),
        (
            {"profile_list": lambda _: [PROFILE]},
            "profiles: a function lists them for each user, so they aren't counted here",
        ),
    ],
)
async def test_what_is_configured_is_told_with_what_was_found(caplog, traits, told) -> None:
    async with reporting(caplog, "", traits={"namespace": "jhub", **traits}) as report:
        [(_, block)] = await report.ended()

    assert told in [line.strip() for line in block.splitlines()]


@pytest.mark.each_python
async def test_other_work_goes_on_after_each_profile_that_is_counted(caplog, monkeypatch) -> None:
    rounds, counted_in = 0, []
    made = inventory.Inventory

    def counted(*given: Any) -> inventory.Inventory:
        counted_in.append(rounds)
        return made(*given)

    async def other_work() -> None:
        nonlocal rounds
        while True:
            await asyncio.sleep(0)
            rounds += 1

    monkeypatch.setattr(inventory, "Inventory", counted)
    other = asyncio.create_task(other_work())
    async with reporting(caplog, traits={"profile_list": [PROFILE] * 5}) as report:
        await report.ended()
    other.cancel()

    assert len(counted_in) == len(set(counted_in)) == 5


async def test_an_unknown_scheduler_is_a_warning_before_the_cluster_is_read(caplog) -> None:
    async with reporting(caplog, "volcano", traits={}) as report:
        [(level, warning)] = report.said
        [_, (_, block)] = await report.ended()

    assert level == "WARNING"
    assert warning.startswith("Every server of the scheduler volcano starts unchecked")
    assert "GPUSpawner.default_filter_schedulers" in warning
    assert "scheduler: volcano, unknown: its servers start unchecked" in block


def setting(scheduler: str) -> Step:
    """Answer a dry run of a pod as admission that names a scheduler."""

    async def step(request: web.Request) -> web.StreamResponse:
        pod = await request.json()
        return web.json_response({**pod, "spec": {**pod["spec"], "schedulerName": scheduler}})

    return step


AT_ADMISSION = "    scheduler set at admission: "
GKE = "gke.io/optimize-utilization-scheduler"
KNOWN = f"{AT_ADMISSION}{GKE}, kube-scheduler with GKE's profile, which changes only scores"
UNKNOWN = f"{AT_ADMISSION}volcano, unknown: its servers start unchecked"


@pytest.mark.parametrize(
    ("scheduler", "level", "told", "warnings"),
    [
        (GKE, "INFO", [KNOWN], 0),
        ("volcano", "WARNING", [UNKNOWN], 1),
        ("default-scheduler", "INFO", [], 0),
    ],
)
async def test_a_scheduler_that_admission_sets_is_told_and_an_unknown_one_is_a_warning(
    caplog, scheduler, level, told, warnings
) -> None:
    async with (
        ScriptedServer(pods=[setting(scheduler)]).serving() as client,
        reporting(caplog, "", traits={"accelerators": {"t4": T4}}, asked_by=client) as report,
    ):
        [(logged, block)] = await report.ended()

    assert logged == level
    assert [it for it in block.splitlines() if it.startswith(AT_ADMISSION)] == told
    warning = f"! Every server of the scheduler {scheduler} starts unchecked"
    assert block.count(warning) == block.count("default_filter_schedulers") == warnings


async def test_what_an_administrator_may_want_to_change_makes_it_a_warning(caplog) -> None:
    traits = {"start_timeout": 60, "preparing_timeout": 30}
    slow = {"slow_spawn_timeout": 90}
    async with reporting(caplog, "", traits=traits, tornado_settings=slow) as report:
        [(level, block)] = await report.ended()

    assert level == "WARNING"
    preparing, progress = (line.strip() for line in block.splitlines() if "!" in line)
    assert preparing.startswith("! GPUSpawner.preparing_timeout is 30 s")
    assert progress.startswith("! slow_spawn_timeout is 90 s")
    assert preparing.endswith(" and fails. Set it to at least 600.")


async def test_missing_rights_are_named_with_the_servers_that_start_unchecked(caplog) -> None:
    refused = [failure(403)] * 1000
    async with reporting(
        caplog, "", kinds=(NODES, PODS, CLAIMS), traits={}, persistentvolumeclaims=refused
    ) as report:
        [(level, block)] = await report.ended()

    assert level == "WARNING"
    assert (
        "! no right to list and watch persistentvolumeclaims: servers with a home directory or "
        "another claim start unchecked. Apply what gpuspawner rbac prints "
    ) in block


IN_A_GROUP = node("c", 1, spec={"providerID": "gce://project/zone/c"})
BY_KARPENTER = node("d", 1)
BY_KARPENTER["metadata"]["labels"]["karpenter.sh/nodepool"] = "default"
REFUSED = {"configmaps": [failure(403)] * 1000, "nodepools": [failure(403)] * 1000}
KARPENTER = {"karpenter.sh": [preferring("v1")] * 9}


async def test_rights_to_see_what_autoscalers_can_add_are_named_where_there_may_be_any(
    caplog,
) -> None:
    """Karpenter without a node shows itself by its API."""
    nodes = [page(IN_A_GROUP), watch(hold=True)]
    async with reporting(caplog, "", traits={}, nodes=nodes, **REFUSED, **KARPENTER) as report:
        [(level, block)] = await report.ended()

    assert level == "WARNING"
    status, pools = (line.strip() for line in block.splitlines() if "!" in line)
    assert pools.startswith("! no right to list and watch nodepools: the hub doesn't know")
    assert status.startswith(
        "! no right to list and watch the ConfigMap of GPUSpawner.autoscaler_status: if Cluster "
    )
    assert status.endswith(
        "prints for the hub's namespace, service account and autoscaler_status, or grant list and "
        "watch on the ConfigMap of GPUSpawner.autoscaler_status in a ClusterRole of yours."
    )


@pytest.mark.parametrize(
    ("autoscaling", "nodes"), [("detect", [node("a", 4)]), ("none", [IN_A_GROUP, BY_KARPENTER])]
)
async def test_rights_about_autoscalers_that_the_cluster_lacks_are_not_missed(
    caplog, autoscaling, nodes
) -> None:
    listed = [page(*nodes), watch(hold=True)]
    traits = {"autoscaling": autoscaling}
    async with reporting(caplog, "", traits=traits, nodes=listed, **REFUSED) as report:
        [(level, _)] = await report.ended()

    assert level == "INFO"


async def test_a_cluster_that_cannot_be_read_yet_is_told_and_told_again_once_it_can(caplog) -> None:
    later = [*[failure(403, "no")] * 5, page(), watch(hold=True)]
    async with reporting(caplog, "", traits={"accelerators": {"t4": T4}}, pods=later) as report:
        [(_, first), (_, second)] = await report.ended()

    assert "scheduler: default-scheduler" in first
    assert "cluster: The hub isn't allowed to list and watch pods" in first
    assert "t4:" not in first
    assert "t4: 2 nodes" in second
    assert "scheduler:" not in second


def growth_with(*objects: Any, **traits: Any) -> str:
    """Return what the report says of growth if autoscalers have these objects."""
    runtime = Runtime(check(Config(GPUSpawner=traits)))
    runtime.view.autoscalers.mark_known("NodePool")
    for it in objects:
        runtime.view.autoscalers.put(it)
    [line] = startup_report.growth(runtime)
    return line


def test_pools_that_an_administrator_expects_are_told() -> None:
    line = growth_with(autoscaling="always")

    assert line == 'other pools may grow (GPUSpawner.autoscaling = "always")'


def test_pools_are_named_with_the_autoscaler_that_grows_them() -> None:
    pools = ({"metadata": {"name": f"pool-{number}"}} for number in range(10))

    line = growth_with(*(strict_convert(it, NodePool) for it in pools))

    assert line.startswith("pools of Karpenter: pool-0, pool-1, ")
    assert line.endswith("pool-7, 2 more")


def test_an_autoscaler_whose_status_cannot_be_read_is_told() -> None:
    line = growth_with(Undecodable("ConfigMap", *STATUS, "", "its data is a number"))

    assert line.startswith("other pools may grow (Cluster Autoscaler's status is old, is text as ")


A100 = {"node_selector": {"gpu": "a100"}, "counts": [2, 4]}
FPGA = {"resource": "example.com/fpga", "node_selector": {"fpga": "f1"}}
OVERRIDE = {**PROFILE["kubespawner_override"], "image": "torch:1"}
PROFILES = [{"display_name": "CPU"}, {"display_name": "GPU", "kubespawner_override": OVERRIDE}]
FOR_ALL = {
    "namespace": "hub",
    "image": "lab:1",
    "extra_labels": {"team": "ml"},
    "scheduler_name": "user-scheduler",
    "uid": lambda _: 1 / 0,
    "environment": {"HOME": lambda _: 1 / 0},
    "modify_pod_hook": lambda *_: 1 / 0,
}


def made(**traits: Any) -> list[Any]:
    settings = check(Config(GPUSpawner={**FOR_ALL, **traits}))
    return list(samples(Runtime(settings), settings))


def of(sample: Any) -> tuple[Any, Any, Any]:
    [container] = sample.pod["spec"]["containers"]
    return (
        container["resources"].get("limits"),
        sample.pod["spec"].get("nodeSelector"),
        container["image"],
    )


def test_each_accelerator_is_tried_with_the_fewest_gpus() -> None:
    a100, fpga = made(accelerators={"a100": A100, "fpga": FPGA})

    assert of(a100) == ({"nvidia.com/gpu": "2"}, {"gpu": "a100"}, "lab:1")
    assert of(fpga) == ({"example.com/fpga": "1"}, {"fpga": "f1"}, "lab:1")
    assert a100.namespace == "hub"
    assert a100.pod["metadata"]["labels"]["team"] == "ml"
    assert a100.pod["spec"]["schedulerName"] == "user-scheduler"


def test_an_accelerator_that_mounts_a_volume_of_every_server_is_tried_without_it() -> None:
    data = {"name": "data", "hostPath": {"path": "/srv/data"}}
    mounting = {**A100, "volume_mounts": [{"name": "data", "mountPath": "/data"}]}

    a100, fpga = made(volumes=[data], accelerators={"a100": mounting, "fpga": FPGA})

    assert of(a100) == ({"nvidia.com/gpu": "2"}, {"gpu": "a100"}, "lab:1")
    assert of(fpga)[0] == {"example.com/fpga": "1"}


@pytest.mark.each_hub
@pytest.mark.parametrize(
    "profiles",
    [
        PROFILES,
        pytest.param(
            dict(zip("ab", PROFILES, strict=True)),
            marks=pytest.mark.skipif(
                kubespawner.version_info < (7, 1),
                reason="version: KubeSpawner 7.1 brought dictionaries",
            ),
        ),
    ],
    ids=["a list", "a dictionary"],
)
def test_each_profile_is_tried_with_what_it_changes(profiles: Any) -> None:
    cpu, gpu = made(profile_list=profiles)

    assert of(gpu) == ({"nvidia.com/gpu": "1"}, {"gpu": "t4"}, "torch:1")
    assert gpu.grant.accelerator.key == "gpu"
    assert of(cpu) == ({}, None, "lab:1")
    assert cpu.grant.accelerator is None


def test_a_profile_s_labels_are_tried_together_with_those_of_every_server() -> None:
    override = {"node_selector": {"gpu": "t4", "a": None}}
    gpu = {"display_name": "GPU", "kubespawner_override": override}

    [sample] = made(profile_list=[gpu], node_selector={"pool": "users", "a": "b"})

    assert of(sample)[1] == {"pool": "users", "gpu": "t4"}


def test_a_profile_of_which_no_pod_can_be_made_keeps_no_other_from_being_tried() -> None:
    broken = {"display_name": "A", "kubespawner_override": {"tolerations": {"key": "gpu"}}}

    cpu, gpu = made(profile_list=[broken, *PROFILES])

    assert [of(it)[0] for it in (cpu, gpu)] == [{}, {"nvidia.com/gpu": "1"}]


def test_a_list_that_needs_a_user_is_not_tried() -> None:
    assert made(profile_list=lambda _: 1 / 0) == []


async def test_a_configuration_of_which_no_sample_can_be_made_is_no_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("gpuspawner.compat.sample_pod.make", lambda *_: 1 / 0)
    settings = check(Config(GPUSpawner={**FOR_ALL, "accelerators": {"a100": A100}}))
    caplog.set_level("INFO")

    await try_all(Runtime(settings), settings)

    assert "No sample" in caplog.text
