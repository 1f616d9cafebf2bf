"""Whom the commands ask for."""

import pytest
from traitlets.config import Config

from gpuspawner.doctor.hub import of_files
from gpuspawner.gates.what_if import NO_ID
from gpuspawner.kube.servers import USER
from gpuspawner.policies.owner import Owner
from tests.unit.makers.files import Files
from tests.unit.makers.storage import claim


@pytest.mark.parametrize(
    ("template", "id_", "name"),
    [
        ("home-{userid}-{user_server}", 7, "home-7-ann"),
        ("home-{userid}", 7, "home-7"),
        ("{userid}-home-{userid}", 7, "7-home-7"),
        ("claim-{user_server}", NO_ID, "claim-ann"),
        ("disk-{userid}", NO_ID, "disk-0"),
    ],
)
async def test_the_owner_s_own_claim_tells_the_id_that_is_in_its_name(
    tmp_path, template, id_, name
):
    files = Files(tmp_path, [])
    anns = ("home-7-ann", "home-7", "7-home-7", "7-home-8", "home-x", "claim-ann")
    files.put(
        "persistentvolumeclaims",
        [
            *(claim(it, labels={USER: "ann"}) for it in anns),
            *(claim(it, labels={USER: "bob"}) for it in ("home-8", "home-8-bob", "disk-8")),
        ],
    )
    config = Config(KubeSpawner={"namespace": "hub", "pvc_name_template": template})

    spawner = of_files(config, tmp_path, Owner("ann")).spawner

    assert (spawner.user.id, spawner.pvc_name) == (id_, name)


@pytest.mark.parametrize("template", ["home-{userid}", "home-{user_server}"])
async def test_labels_that_no_claim_can_have_keep_no_command_from_its_answer(tmp_path, template):
    """Nothing else reads them if KubeSpawner makes no claims."""
    Files(tmp_path, [])
    traits = {"pvc_name_template": template, "storage_extra_labels": {"of": "{nobody}"}}

    spawner = of_files(Config(KubeSpawner=traits), tmp_path, Owner("ann")).spawner

    assert spawner.user.id == NO_ID
