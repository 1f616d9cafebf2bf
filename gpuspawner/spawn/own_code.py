"""What the hub's own code may still change of a pod after a gate has judged it."""

import inspect
import sys
from collections.abc import Iterator

from gpuspawner.compat import jupyterhub, kubespawner
from gpuspawner.compat.code import mentions, names_used
from gpuspawner.preflight.placement import Later
from gpuspawner.runtime import Runtime
from gpuspawner.spawn.host import Host
from gpuspawner.spawn.source import FormReader

_READERS = (
    "pre_spawn_hook",
    "modify_pod_hook",
    "after_pod_created_hook",
    "auth_state_hook",
    "uid",
    "gid",
    "fs_gid",
    "supplemental_gids",
    "container_security_context",
    "pod_security_context",
)
"""The traits that may be functions of an administrator's, and get the spawner with its options."""
_OF_USERS = ("user", "orm_user", "orm_spawner", "auth_state")
"""Names by which code of a spawner's reads who its owner is."""

_HARMLESS = sys.stdlib_module_names | {"kubernetes", "kubernetes_asyncio"}


def later(spawner: Host, runtime: Runtime, unused: tuple[str, ...] = ()) -> Later:
    """Return what becomes of a server's pods after this moment.

    *unused* are methods that a class of the administrator's may have, and that have had no part in
    the pod that is judged.
    """
    hooks = [it for it in (spawner.pre_spawn_hook, spawner.modify_pod_hook) if it is not None]
    code = [*hooks, *kubespawner.methods_of_others(spawner, (*kubespawner.STARTING, *unused))]
    is_early = not jupyterhub.is_starting(spawner) and _runs_before_a_start(spawner)
    return Later(
        runtime.preflight.placements,
        has_own_code=bool(code),
        owner=spawner.user.name if any(map(_may_tell_users_apart, code)) else "",
        is_unknowable=is_early or any(mentions(it, "user_options") for it in code),
    )


def _may_tell_users_apart(code: object) -> bool:
    """Whether a function may treat users differently, or calls others of which nobody can tell."""
    known = getattr(code, "__globals__", None)
    if known is None or any(mentions(code, name) for name in _OF_USERS):
        return True
    used = [known.get(name) for name in names_used(code)]
    modules = [it.__name__ for it in used if inspect.ismodule(it)]
    modules += [it.__module__ for it in used if getattr(it, "__globals__", known) is not known]
    return not _HARMLESS.issuperset(it.partition(".")[0] for it in modules)


def _runs_before_a_start(spawner: Host) -> bool:
    """Whether some of it runs at a start, but before the second gate."""
    applies = spawner.apply_user_options
    return (
        spawner.auth_state_hook is not None
        or not (applies is apply_nothing or applies == {})
        or jupyterhub.runs_before_a_start(spawner)
    )


def as_started(spawner: Host) -> Host:
    """Return a spawner with what the hub overrides for groups when it starts a server.

    A copy, if that changes anything: pages leave the spawner as it is.
    """
    overrides = jupyterhub.group_overrides(spawner)
    if not overrides or jupyterhub.is_starting(spawner):
        return spawner
    copied = spawner.gpuspawner_copy()
    for override in overrides:
        copied.gpuspawner_stock.apply_overrides(override)
    return copied


def reads_options(spawner: Host) -> bool:
    """Whether an administrator's class, hooks, functions or settings read a server's options."""
    return (
        spawner.apply_user_options is not apply_nothing
        or not isinstance(spawner.options_from_form, FormReader)
        or spawner.gpuspawner_has_own_options
        or any(mentions(it, "user_options") for it in _functions(spawner))
    )


def _functions(spawner: Host) -> Iterator[object]:
    yield from (getattr(spawner, name) for name in _READERS)
    yield from spawner.environment.values()
    yield getattr(spawner.authenticator, "pre_spawn_start", None)


def apply_nothing(spawner: object, user_options: object) -> None:
    """The default hook ``apply_user_options``, which does nothing.

    The gates already read the options, but without a hook the hub warns at every start that nothing
    does.
    """
