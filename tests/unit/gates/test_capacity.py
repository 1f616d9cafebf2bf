"""`gpuspawner capacity --servers`, on files; what the API server's quotas allow is played."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpuspawner.doctor import hub as doctor_hub
from gpuspawner.preflight.rejection import Of, OutOfRange, OverQuota, Rejection, Use
from tests.unit.makers.files import T4, Files, of_fleet, printed, using
from tests.unit.makers.policy_pods import container, plain

COURSE = {
    "groups": ["ml-2026"],
    "gpus_per_user": 1,
    "gpus_per_group": 3,
    "explanation": "The course shares three GPUs",
}


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path, of_fleet("on-premises"))


def ask(files: Files, servers: int, *arguments: str) -> int:
    return files.ask("capacity", "--servers", str(servers), *arguments)


def test_it_says_how_many_start_and_what_the_others_lack(files, capsys) -> None:
    files.put("pods", [using("t4-0", 1)])

    assert ask(files, 5, "--profile", "t4") == 1

    assert capsys.readouterr().out.splitlines() == [
        "5 servers with t4:",
        "SERVERS  WHAT BECOMES OF THEM",
        "      3  start on the nodes that exist",
        ("      2  find no room: each asks for 1 GPU, and no node that takes them has more than 0"),
        "To be pulled on 2 nodes: quay.io/jupyterhub/singleuser:latest.",
    ]


def test_options_as_json_choose_the_count_and_programs_get_the_same(files, capsys) -> None:
    options = '{"accelerator": "t4", "gpus": 2}'

    assert ask(files, 2, "--profile", options, "--output", "json") == 0

    expected = {"servers": 2, "fits_now": 2, "on_new_nodes": 0, "lacking": 0}
    assert printed(capsys).items() >= expected.items()


SMALL = [{"display_name": "Small", "slug": "small", "kubespawner_override": {"image": "i"}}]
POOL = "nvidia.com/gpu.product=Tesla-T4"


@pytest.mark.parametrize(
    ("configuration", "profile", "servers", "status", "told"),
    [
        (
            f"c = get_config()\nc.KubeSpawner.profile_list = {SMALL}\n",
            "small",
            2,
            0,
            ["2  start on the nodes that exist", "To be pulled on 1 node: i."],
        ),
        (
            f'{T4}c.GPUSpawner.accelerators["t4"]["scale_up"] = {{"max_nodes": 3, "minutes": 4}}\n',
            "t4",
            8,
            1,
            [
                f"2  start once the pool {POOL} has added 1 node, which takes about 4 minutes",
                "2  find no room: each asks for 1 GPU, and no node that takes them has more than 0",
                f"Pool {POOL}: No more machines can be added: their number is at its maximum.",
            ],
        ),
        (
            f'{T4}c.KubeSpawner.extra_labels = {{"kueue.x-k8s.io/queue-name": "gpus"}}\n',
            "t4",
            2,
            0,
            ["The servers wait in gpus; Kueue's quota isn't judged."],
        ),
        (
            f'{T4}c.KubeSpawner.extra_resource_limits = {{"x/y": "abc"}}\n',
            "t4",
            2,
            2,
            ["2  may start, but nobody knows: ", "Quotas can't be judged: 'abc' "],
        ),
    ],
    ids=["a profile's slug", "a pool that grows", "a queue", "a pod that can't be read"],
)
def test_it_knows_what_the_configuration_makes_of_the_servers(
    files, capsys, configuration, profile, servers, status, told
) -> None:
    files.configuration.write_text(configuration)

    assert ask(files, servers, "--profile", profile) == status

    out = capsys.readouterr().out
    assert [it for it in told if it not in out] == []


def test_what_is_not_known_has_its_own_exit_status(files, capsys) -> None:
    claim = {"name": "home", "persistentVolumeClaim": {"claimName": "shared"}}
    files.configuration.write_text(f"{T4}c.KubeSpawner.volumes = [{claim!r}]\n")
    (files.folder / "persistentvolumeclaims.json").unlink()

    assert ask(files, 2, "--profile", "t4") == 2

    assert "2  may start, but nobody knows: " in capsys.readouterr().out


def test_policies_are_judged_for_members_of_a_group_one_server_each(files, capsys) -> None:
    files.configuration.write_text(f"{T4}c.GPUSpawner.policies = { ({'course': COURSE})!r}\n")
    grant = {"policies": ["course"], "groups": ["ml-2026"]}
    files.put("pods", [plain("ann", grant=grant, containers=[container(gpu=1)])])

    assert ask(files, 4, "--profile", "t4", "--group", "ml-2026") == 1
    out = capsys.readouterr().out
    assert "2  start on the nodes that exist" in out
    assert "2  aren't allowed" in out
    assert (
        "The policy course allows 2. It says: The course shares three GPUs. The group ml-2026 "
        "uses 1 of its 3 GPUs.\n"
    ) in out

    assert ask(files, 4, "--profile", "t4", "--group", "others") == 0
    assert "aren't judged" not in capsys.readouterr().out
    assert ask(files, 4, "--profile", "t4") == 0
    assert "GPUSpawner.policies aren't judged; to judge them, add --group NAME." in (
        capsys.readouterr().out
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("--servers", "3"),
        ("--profile", "t4"),
        ("--group", "g"),
        ("--servers", "3", "--profile", "t5"),
        ("--servers", "3", "--profile", "{"),
    ],
)
def test_a_question_that_cannot_be_answered_is_refused(files, capsys, arguments) -> None:
    assert files.ask("capacity", *arguments) == 3
    assert capsys.readouterr().err.startswith("gpuspawner capacity: ")


@pytest.mark.parametrize("raised", ["web.HTTPError(403, 'no %s', 'luck')", "Told()"])
def test_what_an_administrators_function_says_is_passed_on(files, capsys, raised) -> None:
    files.configuration.write_text(f"""
from tornado import web
c = get_config()
class Told(Exception):
    jupyterhub_message = "no luck"
def listed(spawner):
    raise {raised}
c.KubeSpawner.profile_list = listed
""")

    assert ask(files, 2, "--profile", "t4") == 3

    assert "gpuspawner capacity: no luck" in capsys.readouterr().err


class Quotas:
    """An API server that allows so many GPUs, and no pod of more than 100."""

    def __init__(self, gpus: int) -> None:
        self.gpus = gpus

    async def admit(self, _: str, pod: Any) -> Rejection | None:
        [container] = pod["spec"]["containers"]
        limit = container["resources"]["limits"]["nvidia.com/gpu"]
        asked = int(limit.removesuffix("000m"))
        if asked > 100:
            return Rejection(Of.POD, OutOfRange(()), "maximum per Pod")
        if asked > self.gpus:
            use = Use("requests.nvidia.com/gpu", asked, 0, self.gpus)
            return Rejection(Of.POD, OverQuota((use,)), "exceeded quota")
        return None


@pytest.mark.parametrize(
    ("gpus", "servers", "told"),
    [(3, 4, "3  start"), (0, 4, "4  aren't allowed"), (100, 3, "3  start"), (3, 101, "4  start")],
)
def test_quotas_are_judged_by_the_api_server(
    files, capsys, monkeypatch, gpus, servers, told
) -> None:
    monkeypatch.setattr(doctor_hub, "NoAdmission", lambda: Quotas(gpus))

    ask(files, servers, "--profile", "t4")

    printed = capsys.readouterr()
    assert told in printed.out
    assert ("Quotas can't be judged" in printed.out) == (servers > 100)
    assert ("A ResourceQuota allows" in printed.out) == (gpus < servers <= 100)
