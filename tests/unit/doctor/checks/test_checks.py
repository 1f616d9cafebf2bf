"""What the doctor asks, and for which user."""

from contextlib import asynccontextmanager

import pytest
from traitlets.config import Config

from gpuspawner import GPUSpawner
from gpuspawner.doctor import checks
from gpuspawner.doctor.checks import examine
from gpuspawner.doctor.hub import of_files
from gpuspawner.gates.what_if import NOBODY
from gpuspawner.messages.administrators import fine
from gpuspawner.policies.owner import Owner
from tests.unit.makers.files import Files
from tests.unit.makers.worlds import labelled, node

NAMES = []


class Noting(GPUSpawner):
    """A class of an administrator's, which notes for whom spawners are made."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        NAMES.append(self.user.name)


async def test_no_spawner_is_made_for_anybody_but_the_named_user():
    NAMES.clear()
    config = Config(
        JupyterHub={"spawner_class": Noting},
        KubeSpawner={"k8s_api_host": "http://127.0.0.1:1"},
    )

    found = await examine(config, Owner("ann"))

    assert [it.id for it in found] == ["cluster"]
    assert set(NAMES) == {"ann"}


class OfAccounts(GPUSpawner):
    """A class that looks its users up."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.account = {}[self.user.name]


@pytest.mark.parametrize(("owner", "whom"), [(NOBODY, "an imagined user"), (Owner("ann"), "'ann'")])
async def test_a_class_that_makes_no_spawner_is_an_error_of_its_own(owner, whom):
    config = Config(
        JupyterHub={"spawner_class": OfAccounts},
        KubeSpawner={"k8s_api_host": "http://127.0.0.1:1"},
    )

    [finding] = await examine(config, owner)

    assert (finding.id, finding.severity) == ("own-code", "error")
    assert finding.text == (
        f"The doctor can't check this hub: no spawner can be made for {whom}: "
        f"OfAccounts: KeyError('{owner.name}')."
    )
    user = "a real" if owner == NOBODY else "another"
    assert finding.advice.startswith(f"Name {user} user with --user,")


def of_groups(spawner):
    return spawner.user.groups[0].name


@pytest.mark.parametrize(
    ("kube", "failing"),
    [({"environment": {"TEAM": of_groups}}, "own-code"), ({"profile_list": of_groups}, "profiles")],
)
async def test_the_cluster_is_checked_also_if_code_fails_for_an_imagined_user(
    tmp_path, monkeypatch, kube, failing
):
    Files(tmp_path, [labelled(node("n", 0), {"nvidia.com/gpu.present": "true"})])

    @asynccontextmanager
    async def watching(config, owner):
        yield of_files(config, tmp_path, owner)

    async def nothing(*_):
        return ()

    async def known(_):
        return fine("cluster", "")

    monkeypatch.setattr(checks, "watching", watching)
    monkeypatch.setattr(checks.rights, "check", nothing)
    monkeypatch.setattr(checks.cluster, "check_version", known)
    for name in ("claim_drivers", "runtime_classes"):
        monkeypatch.setattr(checks, name, nothing)

    found = await examine(Config(JupyterHub={"spawner_class": GPUSpawner}, KubeSpawner=kube))

    told = {it.id: it.severity for it in found if it.severity != "fine"}
    assert told == {"no-gpus-on-node": "warning", failing: "warning"}
