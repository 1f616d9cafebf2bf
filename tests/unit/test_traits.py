"""The traits: each is GPUSpawner's own, and its help says since when it exists."""

from __future__ import annotations

import subprocess
import sys

import pytest
from kubespawner import KubeSpawner
from traitlets import TraitType

from gpuspawner import GPUSpawner, traits

TRAITS = {name: it for name, it in vars(traits).items() if isinstance(it, TraitType)}


@pytest.mark.each_python
def test_the_spawner_has_every_trait_as_its_own() -> None:
    assert GPUSpawner.class_own_traits(config=True).keys() == TRAITS.keys()


def test_no_trait_has_the_name_of_a_kubespawner_trait() -> None:
    # The chart sets c.KubeSpawner.*; what c.GPUSpawner sets would replace it.
    assert not TRAITS.keys() & KubeSpawner.class_traits().keys()


@pytest.mark.parametrize("name", TRAITS)
def test_every_trait_says_since_which_version_it_exists(name: str) -> None:
    assert ".. versionadded:: " in TRAITS[name].help


def test_offers_are_traits() -> None:
    assert set(traits.OFFERS) <= TRAITS.keys()


@pytest.mark.each_python
def test_importing_the_package_imports_neither_the_hub_nor_a_client() -> None:
    heavy = "{'jupyterhub', 'kubespawner', 'kubernetes_asyncio', 'tornado'}"
    code = f"import sys, gpuspawner; assert not {heavy} & sys.modules.keys(), sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["configure", "GPUSpawner"])
def test_what_an_old_hub_lacks_is_named_before_a_missing_module(name: str) -> None:
    """Zero to JupyterHub's charts 3 and 4.0 have such hubs, and wheels go into any."""
    code = (
        "import sys; from jupyterhub.spawner import Spawner; del Spawner.apply_user_options;"
        "import kubespawner; sys.modules['kubespawner.slugs'] = None;"
        f"import gpuspawner; gpuspawner.{name}"
    )

    failed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )

    last = failed.stderr.splitlines()[-1]
    assert "IncompatibleError: gpuspawner can't run with JupyterHub " in last
    assert "there is no Spawner.apply_user_options; install versions" in last


@pytest.mark.each_python
def test_importing_a_module_does_not_replace_a_public_name() -> None:
    code = (
        "import tests.quick_imports, gpuspawner, gpuspawner.configuration;"
        "assert callable(gpuspawner.configure);"
        "assert gpuspawner.configure is gpuspawner.configuration.configure"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
