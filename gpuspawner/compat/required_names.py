"""Check that the installed JupyterHub and KubeSpawner have and call the names that gpuspawner uses.

Otherwise they might silently stop calling a gate.
"""

import inspect
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
from kubespawner.spawner import KubeSpawner
from traitlets import HasTraits

from gpuspawner.compat.code import names_used, sets_attribute


class IncompatibleError(Exception):
    """The installed JupyterHub or KubeSpawner lacks something that gpuspawner uses."""


class Requirement(msgspec.Struct, frozen=True):
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


REQUIREMENTS = (
    # JupyterHub calls these gates.
    Requirement(Spawner, "run_options_from_form", ("self", "form_data"), SpawnHandler),
    Requirement(Spawner, "options_from_query", ("self", "query_data"), SpawnHandler),
    Requirement(Spawner, "get_options_form", ("self",), SpawnHandler),
    Requirement(Spawner, "run_pre_spawn_hook", ("self",), User),
    Requirement(Spawner, "run_auth_state_hook", ("self", "auth_state"), User),
    Requirement(Spawner, "clear_state", ("self",), User),
    Requirement(Spawner, "get_state", ("self",), User),
    Requirement(Spawner, "load_state", ("self", "state"), User),
    Requirement(Spawner, "start_polling", ("self",), User),
    # KubeSpawner calls these steps of a start, which are gates too.
    Requirement(KubeSpawner, "_start", ("self",), KubeSpawner),
    Requirement(KubeSpawner, "load_user_options", ("self",), KubeSpawner),
    Requirement(KubeSpawner, "_validate_user_options", ("self", "profile_list"), KubeSpawner),
    Requirement(KubeSpawner, "_apply_overrides", ("self", "spawner_override"), KubeSpawner),
    Requirement(KubeSpawner, "get_pod_manifest", ("self",), KubeSpawner),
    Requirement(KubeSpawner, "get_pvc_manifest", ("self",), KubeSpawner),
    Requirement(
        KubeSpawner, "_make_create_pod_request", ("self", "pod", "request_timeout"), KubeSpawner
    ),
    Requirement(
        KubeSpawner, "_make_create_pvc_request", ("self", "pvc", "request_timeout"), KubeSpawner
    ),
    Requirement(KubeSpawner, "_start_reflector", ("self", "kind", "reflector"), KubeSpawner),
    # gpuspawner itself calls or reads the rest.
    Requirement(KubeSpawner, "_get_reflector_key", ("self", "kind")),
    Requirement(KubeSpawner, "reflectors"),
    Requirement(KubeSpawner, "pod_reflector"),
    Requirement(
        KubeSpawner,
        "_make_delete_pod_request",
        ("self", "pod_name", "delete_options", "grace_seconds", "request_timeout"),
    ),
    Requirement(KubeSpawner, "_namespace_default"),
    Requirement(KubeSpawner, "_options_from_form_default"),
    Requirement(KubeSpawner, "_options_form_default"),
    Requirement(KubeSpawner, "_render_options_form", ("self", "profile_list"), KubeSpawner),
    Requirement(
        KubeSpawner, "_render_options_form_dynamically", ("self", "current_spawner"), KubeSpawner
    ),
    Requirement(KubeSpawner, "_get_initialized_profile_list", ("self", "profile_list")),
    Requirement(KubeSpawner, "_sorted_dict_values", ("self", "src")),
    Requirement(clients, "load_config", named=("host", "ssl_ca_cert", "verify_ssl")),
    Requirement(clients, "shared_client", ("client",)),
    Requirement(Spawner, "_log_name"),
    Requirement(Spawner, "_spawn_future", (), BaseHandler),
    Requirement(Spawner, "_start_pending", (), User),
    Requirement(Spawner, "orm_spawner"),
    Requirement(orm.Spawner, "user_options"),
    Requirement(orm.Spawner, "state"),
    Requirement(orm.Spawner, "server"),
    Requirement(orm.Spawner, "started"),
    Requirement(orm.Spawner, "last_activity"),
    Requirement(orm, "user_group_map"),
    # The check whether the caller of an open request keeps its rights; `BaseHandler` does the same.
    Requirement(BaseHandler, "db"),
    Requirement(BaseHandler, "hub"),
    Requirement(BaseHandler, "cookie_max_age_days", (), BaseHandler),
    Requirement(BaseHandler, "get_token", ("self",), BaseHandler),
    Requirement(objects.Hub, "cookie_name", (), BaseHandler),
    Requirement(orm.APIToken, "hashed"),
    Requirement(orm.User, "name"),
    Requirement(orm.User, "cookie_id", (), BaseHandler),
    Requirement(scopes, "get_scopes_for", ("orm_object",), BaseHandler),
    Requirement(scopes, "has_scope", ("scope", "have_scopes"), BaseHandler, ("db",)),
    Requirement(JupyterHub, "extra_handlers"),
    Requirement(JupyterHub, "tornado_application"),
    Requirement(HasTraits, "_trait_values"),
    # Refusals don't count as failures of the hub: `SpawnException` says so since JupyterHub 6.
    Requirement(
        spawner,
        "SpawnException",
        ("message",),
        BaseHandler,
        ("reason", "message_html", "status_code"),
    )
    if jupyterhub.version_info[0] >= 6
    else Requirement(Spawner, "consecutive_failure_limit", (), BaseHandler),
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
