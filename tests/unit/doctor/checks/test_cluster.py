"""What the doctor says of the schedulers that place servers."""

import sys

import pytest
from msgspec.structs import replace
from traitlets.config import Config

from gpuspawner.doctor.checks.cluster import check_schedulers, check_version
from gpuspawner.doctor.hub import of_files
from gpuspawner.gates.what_if import OfferedServer, Tried, try_out
from gpuspawner.messages.administrators import Severity
from gpuspawner.preflight.decision import Start
from gpuspawner.scheduling.rules import NEWEST_MINOR
from tests.fixtures.chart_hub import chart_module
from tests.unit.makers.files import Files, of_fleet
from tests.unit.makers.scripted import ScriptedServer, raw

NAME = "jhub-user-scheduler"
SOUND = {"enabled": True, "image": {"name": "x.io/kube-scheduler", "tag": "v1.30.14"}}


TOO_NEW = f"v1.{NEWEST_MINOR + 1}.0"


def hub_of_chart(folder, monkeypatch, values, **traits):
    Files(folder, of_fleet("single"))
    chart = chart_module({"scheduling": {"userScheduler": values}}, {"user-scheduler": NAME})
    monkeypatch.setitem(sys.modules, "z2jh", chart)
    return of_files(Config(GPUSpawner={"scheduler_name": NAME, **traits}), folder)


async def found(folder, monkeypatch, values):
    hub = hub_of_chart(folder, monkeypatch, values)
    tried = await try_out(hub, OfferedServer("any", "", {}))
    return list(check_schedulers(hub, [tried]))


async def test_the_chart_s_scheduler_is_named_with_its_version(tmp_path, monkeypatch):
    (finding,) = await found(tmp_path, monkeypatch, SOUND)

    assert finding.severity is Severity.FINE
    assert finding.text == (
        "Scheduler: jhub-user-scheduler, kube-scheduler v1.30.14 of the chart; its values change "
        "only scores."
    )


async def test_a_value_that_may_change_the_filters_is_named(tmp_path, monkeypatch):
    changed = {**SOUND, "plugins": {"filter": {"disabled": [{"name": "*"}]}}}

    (finding,) = await found(tmp_path, monkeypatch, changed)

    assert finding.severity is Severity.ERROR
    assert "scheduling.userScheduler.plugins.filter may change how it filters" in finding.text


class Setting:
    """Admission that names a scheduler."""

    def __init__(self, scheduler):
        self.scheduler = scheduler

    async def admit(self, _, pod):
        return {**pod, "spec": {**pod["spec"], "schedulerName": self.scheduler}}


@pytest.mark.parametrize(
    ("name", "severity", "said"),
    [
        ("gke.io/optimize-utilization-scheduler", Severity.FINE, "GKE's profile"),
        ("volcano", Severity.ERROR, "Every server of the scheduler volcano starts unchecked"),
    ],
)
async def test_a_scheduler_that_admission_sets_is_the_one_that_is_judged(
    tmp_path, name, severity, said
):
    Files(tmp_path, of_fleet("single"))
    hub = replace(of_files(Config(), tmp_path), admission=Setting(name))
    tried = await try_out(hub, OfferedServer("any", "", {}))

    (finding,) = check_schedulers(hub, [tried])

    assert finding.severity is severity
    assert name in finding.text
    assert said in finding.text
    assert isinstance(tried.decision, Start)
    assert bool(tried.decision.notes) == (severity is Severity.ERROR)


@pytest.mark.parametrize(
    ("of_cluster", "of_chart", "traits", "too_new"),
    [
        ("v1.30.14", "v1.30.14", {}, False),
        (TOO_NEW, "v1.30.14", {"scheduler_name": "default-scheduler"}, True),
        (TOO_NEW, "v1.30.14", {}, False),
        ("v1.30.14", TOO_NEW, {}, True),
        ("v1.30.14", TOO_NEW, {"scheduler_version": "1.30"}, False),
        ("v1.30.14", "v1.30.14", {"scheduler_version": TOO_NEW}, True),
    ],
)
async def test_only_the_version_of_the_scheduler_that_places_servers_counts(
    tmp_path, monkeypatch, of_cluster, of_chart, traits, too_new
):
    image = {"name": "x.io/kube-scheduler", "tag": of_chart}
    hub = hub_of_chart(tmp_path, monkeypatch, {**SOUND, "image": image}, **traits)
    server = ScriptedServer(version=[raw(b'{"gitVersion": "%s"}' % of_cluster.encode())])

    async with server.serving() as hub.runtime.client:
        finding = await check_version(hub)

    assert finding.severity is (Severity.WARNING if too_new else Severity.FINE)
    assert not too_new or f"version, {TOO_NEW}, is newer" in finding.text


@pytest.mark.parametrize(("of_chart", "is_named"), [("v1.30.14", True), ("v1.35.7", False)])
async def test_a_user_scheduler_much_older_than_the_cluster_is_named(
    tmp_path, monkeypatch, of_chart, is_named
):
    image = {"name": "x.io/kube-scheduler", "tag": of_chart}
    hub = hub_of_chart(tmp_path, monkeypatch, {**SOUND, "image": image})
    server = ScriptedServer(version=[raw(b'{"gitVersion": "v1.36.2"}')])

    async with server.serving() as hub.runtime.client:
        finding = await check_version(hub)

    assert (f"user-scheduler is kube-scheduler {of_chart}" in finding.text) is is_named
    assert finding.advice.startswith("Set scheduling.userScheduler.image.tag") is is_named


async def test_servers_of_which_no_pod_can_be_made_have_the_configured_scheduler(
    tmp_path, monkeypatch
):
    hub = hub_of_chart(tmp_path, monkeypatch, SOUND)

    [finding] = check_schedulers(hub, [Tried(OfferedServer("t4", "", {}))])

    assert NAME in finding.text
