"""What the doctor says of the hub's settings."""

import asyncio
from types import SimpleNamespace

import pytest
from kubespawner import KubeSpawner
from tornado import web
from traitlets.config import Config

from gpuspawner import GPUSpawner
from gpuspawner.compat import spawner_class
from gpuspawner.configuration import check, load
from gpuspawner.doctor.checks import offers, settings
from gpuspawner.doctor.hub import of_files
from gpuspawner.doctor.offered_servers import listed
from gpuspawner.gates.what_if import NOBODY, UnusableError, try_out
from gpuspawner.policies.owner import Owner
from gpuspawner.start.refusal import misconfigured
from gpuspawner.use.idle_servers import DeviceUse, Window
from gpuspawner.use.prometheus import Prometheus, UseUnknownError
from tests.unit.makers.files import Files, tried_on
from tests.unit.makers.profile_lists import CPU
from tests.unit.makers.worlds import GPU, node


class TheirSpawner(GPUSpawner):
    """A class of an administrator's."""


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        (None, ["spawner-class"]),
        ("gpuspawner", []),
        ("GPUSpawner", []),  # the hub finds classes by their names in lower case
        ("gpuspawner.GPUSpawner", []),
        (GPUSpawner, []),
        (TheirSpawner, []),
        ("kubespawner.KubeSpawner", ["spawner-class"]),
        (KubeSpawner, ["spawner-class"]),
        ("nowhere.Spawner", ["spawner-class"]),
    ],
)
def test_the_hub_must_use_our_class(named, expected):
    config = Config()
    if named is not None:
        config.JupyterHub.spawner_class = named
    hub = SimpleNamespace(config=config, spawner=SimpleNamespace(preflight="enforce"))

    assert [finding.id for finding in settings.check(hub)] == expected


def test_a_class_of_ours_may_be_registered_under_a_name_of_the_administrators(monkeypatch):
    registered = SimpleNamespace(name="ourlab", load=lambda: TheirSpawner)
    monkeypatch.setattr(spawner_class, "entry_points", lambda **_: [registered])
    config = Config({"JupyterHub": {"spawner_class": "OurLab"}})
    hub = SimpleNamespace(config=config, spawner=SimpleNamespace(preflight="enforce"))

    assert list(settings.check(hub)) == []


def set_queue(spawner):
    spawner.queue = "mine"


def test_names_that_are_traits_of_ours_are_found():
    spawner = check(Config({"KubeSpawner": {"pre_spawn_hook": set_queue}}))
    hub = SimpleNamespace(config=Config(), spawner=spawner)

    [finding] = settings.check_names(hub)

    assert (finding.id, finding.severity) == ("same-name", "warning")
    assert finding.text.startswith("pre_spawn_hook sets queue: ")


@pytest.mark.parametrize(("called", "expected"), [(True, []), (False, ["spawner-class"])])
def test_an_own_class_that_is_set_after_configure_is_wrapped(tmp_path, called, expected):
    lines = [
        "import gpuspawner, kubespawner",
        "c = get_config()",
        "gpuspawner.configure(c)" if called else "",
        "class OurSpawner(kubespawner.KubeSpawner): pass",
        "c.JupyterHub.spawner_class = OurSpawner",
    ]
    file = tmp_path / "jupyterhub_config.py"
    file.write_text("\n".join(lines))
    hub = SimpleNamespace(config=load(file), spawner=SimpleNamespace(preflight="enforce"))

    assert [finding.id for finding in settings.check(hub)] == expected


def of_ann(spawner):
    return [MISSPELT] if spawner.user.name == "ann" else []


MISSPELT = {"display_name": "GPU", "kubespawner_override": {"mem_limits": "16G"}}


@pytest.mark.parametrize(
    ("profiles", "owner", "expected"),
    [
        ([MISSPELT], NOBODY, [("slip", "warning")]),
        (
            lambda it: [MISSPELT] if it.user.name == "ann" else [],
            Owner("ann"),
            [("slip", "warning")],
        ),
        (of_ann, Owner("bob"), []),
        (
            lambda _: [{"display_name": "GPU", "kubespawner_override": {"mem_limit": "x"}}],
            NOBODY,
            [("slip", "error")],
        ),
        (lambda _: 1 / 0, NOBODY, []),  # the trial of the servers says so
        (lambda _: 1 / 0, Owner("ann"), [("slip", "error")]),
    ],
)
async def test_slips_are_found_also_in_what_a_function_lists_for_a_user(
    tmp_path, profiles, owner, expected
):
    Files(tmp_path, [])
    config = Config(KubeSpawner={"profile_list": profiles})

    found = await settings.check_slips(of_files(config, tmp_path, owner))

    assert [(it.id, it.severity) for it in found] == expected


@pytest.mark.usefixtures("clock")
async def test_a_function_is_asked_for_its_profiles_once_even_if_it_never_answers(tmp_path):
    asked = []

    async def never(spawner):
        asked.append(spawner.user.name)
        await asyncio.Event().wait()

    Files(tmp_path, [])
    config = Config(KubeSpawner={"profile_list": never, "start_timeout": 90})
    hub, loop = of_files(config, tmp_path, Owner("ann")), asyncio.get_running_loop()
    began = loop.time()

    [found] = await settings.check_slips(hub)
    with pytest.raises(UnusableError, match="no answer within 90 s"):
        await listed(hub)

    text = "KubeSpawner.profile_list fails for ann: TimeoutError('no answer within 90 s')."
    assert (found.id, found.severity, found.text) == ("slip", "error", text)
    assert (asked, loop.time() - began) == (["ann"], 90)


async def test_what_a_function_has_listed_once_is_what_is_tried(tmp_path):
    answers = [[CPU], []]
    Files(tmp_path, [])
    config = Config(KubeSpawner={"profile_list": lambda _: answers.pop(0)})
    hub = of_files(config, tmp_path)

    await settings.check_slips(hub)

    assert [it.offer for it in await listed(hub)] == ["the profile “CPU only”"]


def a_pool(**disruption):
    return {"metadata": {"name": "gpu"}, "spec": {"disruption": disruption}}


@pytest.mark.parametrize(
    ("pools", "traits", "ids"),
    [
        ([a_pool()], {}, ["consolidation"]),
        ([a_pool(consolidationPolicy="WhenEmptyOrUnderutilized")], {}, ["consolidation"]),
        ([a_pool()], {"do_not_disrupt": True}, []),
        ([a_pool()], {"extra_annotations": {"karpenter.sh/do-not-disrupt": "true"}}, []),
        ([a_pool(consolidationPolicy="WhenEmpty")], {}, []),
        ([a_pool(consolidateAfter="Never")], {}, []),
        ([a_pool(budgets=[{"nodes": "10%"}, {"nodes": "0"}])], {}, []),
        ([a_pool(budgets=[{"nodes": "0%", "reasons": ["Empty", "Underutilized"]}])], {}, []),
        ([a_pool(budgets=[{"nodes": "0", "reasons": ["Drifted"]}])], {}, ["consolidation"]),
        ([a_pool(budgets=[{"nodes": "0", "schedule": "@daily"}])], {}, ["consolidation"]),
        ([a_pool(budgets=[{"nodes": "10%"}])], {}, ["consolidation"]),
        ([], {}, []),
    ],
)
async def test_servers_that_karpenter_may_consolidate_away_are_named(tmp_path, pools, traits, ids):
    Files(tmp_path, []).put("nodepools", pools)

    hub = of_files(Config(GPUSpawner=traits), tmp_path)

    found = list(settings.check_disruption(hub, []))

    assert [it.id for it in found] == ids
    assert all("on nodes of gpu to consolidate" in it.text for it in found)


def a_profile(name, **override):
    return {"display_name": name, "kubespawner_override": override}


GPU_LIMIT = {"extra_resource_limits": {GPU: "1"}}
KEPT = {**GPU_LIMIT, "do_not_disrupt": True}
ANNOTATED = {**GPU_LIMIT, "extra_annotations": {"karpenter.sh/do-not-disrupt": "true"}}


@pytest.mark.parametrize(
    ("profiles", "whose"),
    [
        ([a_profile("A", **KEPT)], []),
        ([a_profile("A", **ANNOTATED)], []),
        ([a_profile("A", **KEPT), a_profile("CPU")], []),  # whose nodes they want to shrink
        ([a_profile("A", **KEPT), a_profile("B", **GPU_LIMIT)], ["servers of the profile “B”"]),
        ([a_profile("CPU"), a_profile("Large")], ["users' servers"]),
        ([a_profile("A", **GPU_LIMIT), a_profile("CPU")], ["users' servers"]),
    ],
)
async def test_profiles_may_keep_their_own_servers_from_being_consolidated(
    tmp_path, profiles, whose
):
    Files(tmp_path, [node("n", 1)]).put("nodepools", [a_pool()])
    hub, tried = await tried_on(tmp_path, kube={"profile_list": profiles})

    found = list(settings.check_disruption(hub, tried))

    assert [it.text for it in found] == [
        f"Karpenter may end {it} on nodes of gpu to consolidate nodes." for it in whose
    ]


@pytest.mark.parametrize(
    ("trait", "answer", "expected"),
    [
        (False, None, []),
        (True, None, []),
        ({"prometheus": "http://x"}, UseUnknownError("x: refused"), ["warning"]),
        ({"prometheus": "http://x"}, Window(300, 0, {}), ["warning"]),
        (
            {"prometheus": "http://x"},
            Window(300, 0, {("jhub", "a"): [DeviceUse(("GPU-1", ""), 0, 1)]}),
            ["fine"],
        ),
    ],
)
async def test_a_prometheus_that_says_nothing_of_gpus_is_found(
    monkeypatch, trait, answer, expected
):
    async def window(*_):
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(Prometheus, "window", window)
    hub = SimpleNamespace(spawner=SimpleNamespace(gpu_use=trait))

    found = await settings.check_use(hub)

    assert [it.severity for it in found] == expected
    assert {it.id for it in found} <= {"gpu-use"}


async def test_the_doctor_asks_only_for_the_labels_that_the_hub_asks_for(monkeypatch):
    asked = []

    async def ask(_, query):
        asked.append(query)
        return []

    monkeypatch.setattr(Prometheus, "_ask", ask)
    trait = {"prometheus": "http://x", "prometheus_labels": {"cluster": "prod"}}
    hub = SimpleNamespace(spawner=SimpleNamespace(gpu_use=trait))

    [found] = await settings.check_use(hub)

    assert asked
    assert all(it.count('cluster="prod"') == it.count("{") for it in asked)
    assert "gpu_use.prometheus_labels" in found.advice


def of_team(spawner):
    return str({"ann": "a"}[spawner.user.name])


def of_groups(spawner):
    return str(spawner.user.groups[0].name)


def of_the_database(spawner):
    return str(spawner.user.orm_user.id)


class Own(KubeSpawner):
    """A class of an administrator's, which asks the user for more than the doctor knows."""

    async def get_pod_manifest(self):
        return await self.user.get_auth_state()


class Forbidding(KubeSpawner):
    """A class of an administrator's, which gives nobody a pod."""

    async def get_pod_manifest(self):
        raise web.HTTPError(403, "you have no team")


class Waiting(KubeSpawner):
    """A class of an administrator's, which asks somebody who never answers."""

    async def get_pod_manifest(self):
        return await asyncio.Event().wait()


def hub_for(folder, owner, **kube):
    Files(folder, [])
    kind = kube.pop("kind", GPUSpawner)
    config = Config(JupyterHub={"spawner_class": kind}, KubeSpawner=kube)
    return of_files(config, folder, owner)


async def code_of(hub):
    """Return what the doctor says of the administrator's code."""
    told = offers.check(hub, [await try_out(hub, it) for it in await listed(hub)], {})
    return [it for it in told if it.id == "own-code"]


ASKING = (of_team, of_groups, of_the_database)


@pytest.mark.parametrize(
    "settings_",
    [
        *({"environment": {"TEAM": it}} for it in ASKING),
        {"kind": Own},
        {"kind": Waiting, "start_timeout": 0},
    ],
    ids=["name", "groups", "database", "class", "no answer"],
)
async def test_code_that_asks_who_the_user_is_makes_no_error_for_an_imagined_one(
    tmp_path, settings_
):
    [finding] = await code_of(hub_for(tmp_path, NOBODY, **settings_))

    assert finding.severity == "warning"
    assert "for an imagined user: " in finding.text
    assert finding.advice.startswith("Name a real user with --user, ")


async def test_of_a_real_user_such_code_makes_a_pod_or_an_error(tmp_path):
    kube = {"environment": {"TEAM": of_team}}

    assert await code_of(hub_for(tmp_path, Owner("ann"), **kube)) == []

    [finding] = await code_of(hub_for(tmp_path, Owner("bob"), **kube))
    assert finding.severity == "error"
    assert "fails for 'bob': KeyError('bob')." in finding.text


LISTING = {"profile_list": of_groups}
BY_FUNCTION = "The function of KubeSpawner.profile_list fails for"


@pytest.mark.parametrize(
    ("owner", "kube", "severity", "told"),
    [
        (NOBODY, LISTING, "warning", f"{BY_FUNCTION} an imagined user: "),
        (Owner("bob"), LISTING, "error", f"{BY_FUNCTION} 'bob': "),
        (
            NOBODY,
            {"kind": Forbidding, "profile_list": [CPU]},
            "warning",
            "Code of yours forbids it to an imagined user: you have no team",
        ),
    ],
)
async def test_code_that_leaves_a_user_no_profile_is_an_error_only_for_a_real_one(
    tmp_path, owner, kube, severity, told
):
    hub = hub_for(tmp_path, owner, **kube)
    with pytest.raises(UnusableError) as failed:
        await listed(hub)

    finding = settings.without_servers(hub, failed.value)

    assert (finding.id, finding.severity) == ("profiles", severity)
    assert finding.text.startswith(told)


async def test_a_list_of_profiles_that_is_wrong_is_an_error_for_everybody(tmp_path):
    failed = UnusableError("GPUSpawner.accelerators can only be set for the whole hub")
    failed.__cause__ = misconfigured(str(failed))

    finding = settings.without_servers(hub_for(tmp_path, NOBODY, profile_list=[CPU]), failed)

    assert (finding.id, finding.severity) == ("profiles", "error")
    assert finding.text == f"No user can start a server: {failed}"
