"""What the hub's own code may still change of a pod after a gate has judged it."""

import inspect

from gpuspawner.compat import jupyterhub, kubespawner
from gpuspawner.compat.code import names_used
from gpuspawner.preflight.placement import Later
from gpuspawner.runtime import Runtime
from gpuspawner.spawn.host import Host

_OF_USERS = frozenset(("user", "orm_user", "orm_spawner", "get_auth_state", "auth_state"))
"""Names by which code of a spawner's reads who its owner is."""


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
        is_unknowable=is_early or any("user_options" in names_used(it) for it in code),
    )


def _may_tell_users_apart(code: object) -> bool:
    """Whether a function may treat users differently, as far as its own code shows."""
    names, known = names_used(code), getattr(code, "__globals__", None)
    calls = known is None or any(inspect.isfunction(known.get(it)) for it in names)
    return calls or not names.isdisjoint(_OF_USERS)


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
    copied = spawner.copied()
    for override in overrides:
        copied.stock.apply_overrides(override)
    return copied


def apply_nothing(spawner: object, user_options: object) -> None:
    """The default hook ``apply_user_options``, which does nothing.

    The gates already read the options, but without a hook the hub warns at every start that nothing
    does.
    """
