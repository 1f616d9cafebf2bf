"""The installed JupyterHub and KubeSpawner meet the requirements; missing names are reported."""

import jupyterhub
import kubespawner
import pytest
from jupyterhub.app import JupyterHub
from jupyterhub.handlers.base import BaseHandler
from jupyterhub.handlers.pages import SpawnHandler
from jupyterhub.spawner import Spawner
from jupyterhub.user import User
from kubespawner import KubeSpawner, clients
from sqlalchemy.orm import QueryableAttribute
from traitlets import HasTraits

from gpuspawner.compat.code import sets_attribute
from gpuspawner.compat.required_names import REQUIREMENTS, IncompatibleError, RequiredName, check

pytestmark = pytest.mark.each_python

DELETE = "self, pod_name, delete_options, grace_seconds, request_timeout"
VERSIONS = f"JupyterHub {jupyterhub.__version__} and KubeSpawner {kubespawner.__version__}"

NAMED = "host=..., ssl_ca_cert=..., verify_ssl=..."


def _does_nothing(*_: object) -> None:
    """Accept the arguments of any method."""


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=str)
def test_the_installed_versions_meet_each_requirement(requirement) -> None:
    assert requirement.missing() == ""


def test_with_the_installed_versions_a_hub_starts() -> None:
    check()


def _can_be_taken_away(requirement: RequiredName) -> bool:
    """Whether a test can delete the name: nothing else has or sets it, and it is no column."""
    owner, *bases = getattr(requirement.owner, "__mro__", (requirement.owner,))
    having = [it for it in (owner, *bases) if requirement.name in vars(it)]
    is_column = isinstance(requirement.owner.__dict__.get(requirement.name), QueryableAttribute)
    is_set = isinstance(owner, type) and sets_attribute(owner, requirement.name)
    return having == [owner] and not is_column and not is_set


@pytest.mark.parametrize("requirement", [*filter(_can_be_taken_away, REQUIREMENTS)], ids=str)
def test_each_missing_name_is_reported(requirement, monkeypatch) -> None:
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
        (clients, "load_config", f"there is no kubespawner.clients.load_config({NAMED})"),
    ],
)
def test_a_missing_method_is_reported_with_its_arguments(owner, name, missing, monkeypatch) -> None:
    monkeypatch.delattr(owner, name)

    assert _lack() == missing


def test_an_attribute_that_methods_set_counts_as_present(monkeypatch) -> None:
    """JupyterHub's class has no ``tornado_application``; its methods set it."""
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
def test_a_changed_signature_is_reported(owner, name, takes, monkeypatch) -> None:
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
def test_a_method_that_is_no_longer_called_is_reported(used_in, method, used, monkeypatch) -> None:
    monkeypatch.setattr(used_in, method, _does_nothing)

    assert _lack() == f"{used_in.__name__} doesn't use {used}"


def test_traits_that_cannot_be_copied_are_reported(monkeypatch) -> None:
    monkeypatch.setattr(HasTraits, "setup_instance", _does_nothing)

    assert _lack() == "there is no HasTraits._trait_values"


def _lack() -> str:
    """Return the missing requirement from the error message."""
    with pytest.raises(IncompatibleError) as raised:
        check()
    before = f"gpuspawner can't run with {VERSIONS}: "
    after = "; install versions that gpuspawner supports"
    text = str(raised.value)
    assert text.startswith(before)
    assert text.endswith(after)
    return text.removeprefix(before).removesuffix(after)
