"""Check that the installed JupyterHub and KubeSpawner have and call the names that gpuspawner uses.

Otherwise they might silently stop calling a gate.
"""

import inspect
from collections.abc import Iterator
from types import ModuleType

import jupyterhub
import kubespawner
import msgspec
from jupyterhub import objects, orm, scopes, spawner
from jupyterhub.app import JupyterHub
from jupyterhub.handlers.base import BaseHandler
from jupyterhub.handlers.pages import SpawnHandler
from jupyterhub.spawner import Spawner
from jupyterhub.user import User
from kubespawner import clients
from kubespawner.reflector import ResourceReflector
from kubespawner.spawner import KubeSpawner
from traitlets import HasTraits

from gpuspawner.compat.code import names_used, sets_attribute


class IncompatibleError(Exception):
    """The installed JupyterHub or KubeSpawner lacks something that gpuspawner uses."""


class RequiredName(msgspec.Struct, frozen=True):
    """One name that gpuspawner overrides or uses.

    Attributes:
        takes: The parameters passed to it by position.
        named: Those passed by name.
        used_in: The class that has to use it; None if only gpuspawner does.
    """

    owner: type | ModuleType
    name: str
    takes: tuple[str, ...] = ()
    used_in: type | None = None
    named: tuple[str, ...] = ()

    def __str__(self) -> str:
        arguments = self._arguments() if self.takes or self.named else ""
        return f"{self.owner.__name__}.{self.name}{arguments}"

    def missing(self) -> str:
        """Describe what the installed version lacks; empty if nothing."""
        if not self._is_there():
            return f"there is no {self}"
        if not self._can_be_called():
            return f"{self.owner.__name__}.{self.name} doesn't take {self._arguments()}"
        if self.used_in is not None and self.name not in names_used(self.used_in):
            return f"{self.used_in.__name__} doesn't use {self}"
        return ""

    def _arguments(self) -> str:
        given = (*self.takes, *(f"{name}=..." for name in self.named))
        return f"({', '.join(given)})"

    def _is_there(self) -> bool:
        """Whether the owner has the name, or its methods set it on each object."""
        absent = object()
        if inspect.getattr_static(self.owner, self.name, absent) is not absent:
            return True
        return isinstance(self.owner, type) and sets_attribute(self.owner, self.name)

    def _can_be_called(self) -> bool:
        if not self.takes and not self.named:
            return True
        try:
            signature = inspect.signature(getattr(self.owner, self.name))
            signature.bind(*self.takes, **dict.fromkeys(self.named))
        except TypeError:
            return False
        return True


def _names(owner: type | ModuleType, *names: str) -> Iterator[RequiredName]:
    """Yield names that gpuspawner alone uses, whatever their parameters are."""
    return (RequiredName(owner, name) for name in names)


REQUIREMENTS = (
    # JupyterHub calls these gates.
    RequiredName(Spawner, "run_options_from_form", ("self", "form_data"), SpawnHandler),
    RequiredName(Spawner, "options_from_query", ("self", "query_data"), SpawnHandler),
    RequiredName(Spawner, "get_options_form", ("self",), SpawnHandler),
    RequiredName(Spawner, "run_pre_spawn_hook", ("self",), User),
    RequiredName(Spawner, "run_auth_state_hook", ("self", "auth_state"), User),
    RequiredName(Spawner, "clear_state", ("self",), User),
    RequiredName(Spawner, "get_state", ("self",), User),
    RequiredName(Spawner, "load_state", ("self", "state"), User),
    RequiredName(Spawner, "start_polling", ("self",), User),
    # KubeSpawner calls these steps of a start, which are gates too.
    RequiredName(KubeSpawner, "_start", ("self",), KubeSpawner),
    RequiredName(KubeSpawner, "load_user_options", ("self",), KubeSpawner),
    RequiredName(KubeSpawner, "_validate_user_options", ("self", "profile_list"), KubeSpawner),
    RequiredName(KubeSpawner, "_apply_overrides", ("self", "spawner_override"), KubeSpawner),
    RequiredName(KubeSpawner, "get_pod_manifest", ("self",), KubeSpawner),
    RequiredName(KubeSpawner, "get_pvc_manifest", ("self",), KubeSpawner),
    RequiredName(
        KubeSpawner, "_make_create_pod_request", ("self", "pod", "request_timeout"), KubeSpawner
    ),
    RequiredName(
        KubeSpawner, "_make_create_pvc_request", ("self", "pvc", "request_timeout"), KubeSpawner
    ),
    RequiredName(KubeSpawner, "_start_reflector", ("self", "kind", "reflector"), KubeSpawner),
    RequiredName(ResourceReflector, "_watch_and_update", ("self",), ResourceReflector),
    # gpuspawner itself calls or reads the rest.
    *_names(User, "allow_named_servers"),
    *_names(Spawner, "_log_name", "orm_spawner", "apply_user_options"),
    *_names(KubeSpawner, "reflectors", "pod_reflector", "_namespace_default"),
    *_names(ResourceReflector, "first_load_future", "_stopping"),
    RequiredName(ResourceReflector, "_list_and_update", ("self",)),
    *_names(KubeSpawner, "_options_from_form_default", "_options_form_default"),
    *_names(orm.Spawner, "user_options", "state", "server", "started", "last_activity"),
    *_names(orm, "user_group_map"),
    *_names(JupyterHub, "extra_handlers", "tornado_application"),
    *_names(HasTraits, "_trait_values", "_all_trait_default_generators"),
    RequiredName(KubeSpawner, "_get_reflector_key", ("self", "kind")),
    RequiredName(
        KubeSpawner,
        "_make_delete_pod_request",
        ("self", "pod_name", "delete_options", "grace_seconds", "request_timeout"),
    ),
    RequiredName(KubeSpawner, "_render_options_form", ("self", "profile_list"), KubeSpawner),
    RequiredName(
        KubeSpawner, "_render_options_form_dynamically", ("self", "current_spawner"), KubeSpawner
    ),
    RequiredName(KubeSpawner, "_get_initialized_profile_list", ("self", "profile_list")),
    RequiredName(KubeSpawner, "_sorted_dict_values", ("self", "src")),
    RequiredName(KubeSpawner, "_expand_all", ("self", "src"), KubeSpawner),
    RequiredName(KubeSpawner, "_build_pod_labels", ("self", "extra_labels"), KubeSpawner),
    RequiredName(KubeSpawner, "_build_common_labels", ("self", "extra_labels"), KubeSpawner),
    RequiredName(clients, "load_config", named=("host", "ssl_ca_cert", "verify_ssl")),
    RequiredName(clients, "shared_client", ("client",)),
    RequiredName(Spawner, "_spawn_future", (), BaseHandler),
    RequiredName(Spawner, "_start_pending", (), User),
    RequiredName(Spawner, "_spawn_pending", (), BaseHandler),
    RequiredName(Spawner, "_stop_pending", (), User),
    # The check whether the caller of an open request keeps its rights; `BaseHandler` does the same.
    *_names(BaseHandler, "db", "hub"),
    *_names(orm.APIToken, "hashed"),
    *_names(orm.User, "name"),
    RequiredName(BaseHandler, "cookie_max_age_days", (), BaseHandler),
    RequiredName(BaseHandler, "get_token", ("self",), BaseHandler),
    RequiredName(objects.Hub, "cookie_name", (), BaseHandler),
    RequiredName(orm.User, "cookie_id", (), BaseHandler),
    RequiredName(scopes, "get_scopes_for", ("orm_object",), BaseHandler),
    RequiredName(scopes, "has_scope", ("scope", "have_scopes"), BaseHandler, ("db",)),
    # Refusals don't count as failures of the hub: `SpawnException` says so since JupyterHub 6.
    RequiredName(
        spawner,
        "SpawnException",
        ("message",),
        BaseHandler,
        ("reason", "message_html", "status_code"),
    )
    if jupyterhub.version_info[0] >= 6
    else RequiredName(Spawner, "consecutive_failure_limit", (), BaseHandler),
)


def check() -> None:
    """Check all requirements.

    Raises:
        IncompatibleError: One isn't met; the message names it and the versions.
    """
    for requirement in REQUIREMENTS:
        if missing := requirement.missing():
            raise IncompatibleError(
                f"gpuspawner can't run with JupyterHub {jupyterhub.__version__} and KubeSpawner "
                f"{kubespawner.__version__}: {missing}; install versions that gpuspawner supports"
            )
