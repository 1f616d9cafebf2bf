"""What the installed JupyterHub and KubeSpawner have to have is there, or its lack is named."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import jupyterhub
import kubespawner
import pytest
from jupyterhub import orm
from jupyterhub.app import JupyterHub
from jupyterhub.handlers.base import BaseHandler
from jupyterhub.handlers.pages import SpawnHandler
from jupyterhub.spawner import Spawner
from jupyterhub.user import User
from kubespawner import KubeSpawner, clients
from traitlets import HasTraits

from gpuspawner.compat.requirements import (
    REQUIREMENTS,
    IncompatibleError,
    Requirement,
    check,
)

DELETE = "self, pod_name, delete_options, grace_seconds, request_timeout"
VERSIONS = f"JupyterHub {jupyterhub.__version__} and KubeSpawner {kubespawner.__version__}"

NAMED = "host=..., ssl_ca_cert=..., verify_ssl=..."


def _does_nothing(*_: object) -> None:
    """Take whatever a method takes."""


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=str)
def test_the_installed_versions_meet_each_requirement(requirement: Requirement) -> None:
    assert requirement.missing() == ""


def test_with_the_installed_versions_a_hub_starts() -> None:
    check()


def _can_be_taken_away(requirement: Requirement) -> bool:
    """Whether no base class has the name too; SQLAlchemy lets go of no column."""
    owner, *bases = getattr(requirement.owner, "__mro__", (requirement.owner,))
    having = [it for it in (owner, *bases) if requirement.name in vars(it)]
    return having == [owner] and owner is not orm.Spawner


@pytest.mark.parametrize("requirement", [*filter(_can_be_taken_away, REQUIREMENTS)], ids=str)
def test_each_name_that_is_gone_is_named(
    requirement: Requirement, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(requirement.owner, requirement.name)

    assert _lack() == f"there is no {requirement}"


@pytest.mark.parametrize(
    ("owner", "name", "missing"),
    [
        (
            KubeSpawner,
            "_make_delete_pod_request",
            f"there is no KubeSpawner._make_delete_pod_request({DELETE})",
        ),
        (KubeSpawner, "pod_reflector", "there is no KubeSpawner.pod_reflector"),
        (
            clients,
            "load_config",
            f"there is no kubespawner.clients.load_config({NAMED})",
        ),
    ],
)
def test_a_name_that_is_gone_is_named_with_what_it_would_take(
    owner: type | ModuleType, name: str, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(owner, name)

    assert _lack() == missing


def test_what_is_only_set_on_each_object_counts_as_there_as_long_as_it_is_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing of the class itself says that a hub has an application."""
    assert "tornado_application" not in vars(JupyterHub)

    monkeypatch.setattr(JupyterHub, "init_tornado_application", _does_nothing)

    assert _lack() == "there is no JupyterHub.tornado_application"


@pytest.mark.parametrize(
    ("owner", "name", "takes"),
    [
        (KubeSpawner, "_make_create_pod_request", "self, pod, request_timeout"),
        (KubeSpawner, "_apply_overrides", "self, spawner_override"),
        (Spawner, "run_options_from_form", "self, form_data"),
        (clients, "shared_client", "client"),
    ],
)
def test_another_signature_is_named(
    owner: Any, name: str, takes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other(self: object, *, pod: object) -> None:
        """Take its arguments by name."""

    monkeypatch.setattr(owner, name, other)

    assert _lack() == f"{owner.__name__}.{name} doesn't take ({takes})"


@pytest.mark.parametrize(
    ("used_in", "method", "used"),
    [
        (SpawnHandler, "_post", "Spawner.run_options_from_form(self, form_data)"),
        (SpawnHandler, "_get", "Spawner.options_from_query(self, query_data)"),
        (User, "spawn", "Spawner.run_pre_spawn_hook(self)"),
        (BaseHandler, "spawn_single_user", "Spawner._spawn_future"),
        (KubeSpawner, "_start", "KubeSpawner.load_user_options(self)"),
    ],
)
def test_a_name_that_is_not_used_any_more_where_it_has_to_be_is_named(
    used_in: type, method: str, used: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(used_in, method, _does_nothing)

    assert _lack() == f"{used_in.__name__} doesn't use {used}"


def test_a_hub_without_traits_that_can_be_copied_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HasTraits, "setup_instance", _does_nothing)

    assert _lack() == "there is no HasTraits._trait_values"


def _lack() -> str:
    """What the hub is not started for, without the sentence around it."""
    with pytest.raises(IncompatibleError) as raised:
        check()
    before = f"gpuspawner can't run with {VERSIONS}: "
    after = "; install versions that gpuspawner supports"
    text = str(raised.value)
    assert text.startswith(before)
    assert text.endswith(after)
    return text.removeprefix(before).removesuffix(after)
