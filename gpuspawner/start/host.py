"""The spawner as a protocol: the parts of it that gpuspawner uses."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol

from tornado import web

from gpuspawner import language
from gpuspawner.compat import jupyterhub, pages
from gpuspawner.compat.hub_limits import StartLimits
from gpuspawner.compat.kubespawner import Stock
from gpuspawner.kube.quoting import one_line
from gpuspawner.traits.settings import Settings
from gpuspawner.traits.trait_types import setting


class User(Protocol):
    """The server's owner, even when an administrator starts it."""

    id: int
    name: str
    db: Any
    spawners: Mapping[str, "Host"]


class Host(Settings, StartLimits, Protocol):
    """A spawner, with the attributes from JupyterHub and KubeSpawner, and those of the whole hub.

    `setting` reads our other traits: the class of an administrator's may use their names otherwise.
    """

    name: str
    user: User
    orm_spawner: Any
    hub: Any
    handler: web.RequestHandler | None
    user_options: Any
    gpuspawner_has_own_options: bool
    active: bool
    ready: bool
    pod_name: str
    gpuspawner_stock: Stock
    storage_pvc_ensure: bool
    apply_user_options: Any
    pre_spawn_hook: Any
    modify_pod_hook: Any
    auth_state_hook: Any
    authenticator: Any
    environment: dict[str, Any]
    options_form: Any
    options_from_form: Any
    api: Any

    def get_pvc_manifest(self) -> Any:
        """Make the PersistentVolumeClaim of the user's home directory."""

    def has_trait(self, name: str) -> bool:
        """Whether it has a trait of this name, and not another attribute."""

    def get_state(self) -> dict[str, Any]:
        """What the hub stores of its server."""

    def gpuspawner_copy(self) -> "Host":
        """Return a copy whose traits can change without changing this spawner's."""

    async def load_user_options(self) -> None:
        """Load the chosen profile."""

    async def get_pod_manifest(self) -> Any:
        """Make the pod."""


def log_name(spawner: Host) -> str:
    """The user and the server, for a line of the log."""
    return one_line(jupyterhub.log_name(spawner))


@asynccontextmanager
async def within_start_timeout(spawner: Host) -> AsyncIterator[None]:
    """Wait for an administrator's code only as long as for the server itself: it may never answer.

    It may be a function, a method of a class, or a value that KubeSpawner asks a function for.

    Raises:
        TimeoutError: The time is over.
    """
    seconds = spawner.start_timeout
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            yield
    except TimeoutError as error:
        if not limit.expired():  # the code's own
            raise
        raise TimeoutError(f"no answer within {seconds} s") from error


# The language of a spawner's messages.


def set_locale(spawner: Host, handler: web.RequestHandler | None = None) -> None:
    """From here on, answer this request in the language of the user who sent it.

    The trait ``language`` comes first, then *handler*. Then the language stays as it is if the
    request was heard. Else, it is that of the handler that the hub has given the spawner, if there
    is one; that may be an earlier page's.
    """
    if chosen := setting(spawner, "language"):
        language.set_locale(chosen)
    elif serving := handler or (None if pages.is_heard() else spawner.handler):
        language.set_locale(serving.request.headers.get("Accept-Language", ""))
