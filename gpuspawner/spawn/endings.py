"""Servers that end by their lifetime: told on the hub's home page before, and on the form after."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

from gpuspawner import messages
from gpuspawner.compat import people
from gpuspawner.compat.jupyterhub import announce_on_home_page
from gpuspawner.policy.charges import owner_names
from gpuspawner.runtime import Runtime
from gpuspawner.spawn.host import Host, log_name

EXCEEDED = "DeadlineExceeded"
"""The reason in the status of a pod that has run for ``activeDeadlineSeconds``."""


def announce(hub: Any, running: Runtime) -> None:
    """Say on the hub's home page when the user's servers end, beside the hub's own announcement."""
    announce_on_home_page(hub, lambda user: told_before(running, user))


def told_before(running: Runtime, user: Any) -> Markup:
    """Say when each of a user's servers ends; nothing if none does."""
    if user is None or not running.policies:
        return Markup()
    person = people.person(user)
    ending = sorted(_ending(running, owner_names(person.name, person.label)))
    lines = [messages.ends_in(name, left) for left, name in ending]
    return Markup("<br>").join(lines)


def _ending(running: Runtime, owners: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Yield the seconds until a server ends, and its name."""
    accounts, now = running.accounts, datetime.now(UTC)
    for key, charges in accounts.usage.of_owner(owners).items():
        pod = accounts.ledger.pods.get(key)
        if pod is not None and (end := pod.ends_at) is not None:
            yield max(0, round((end - now).total_seconds())), charges[0].server


def note(spawner: Host, running: Runtime, pod: Any) -> None:
    """Remember that a server has reached its lifetime, if its pod says so."""
    status = (pod or {}).get("status") or {}
    server = spawner.user.name, spawner.name
    if status.get("reason") == EXCEEDED and server not in running.accounts.ended:
        seconds = pod["spec"].get("activeDeadlineSeconds") or 0
        running.accounts.ended[server] = seconds
        spawner.log.info(
            "%s's server has run for its whole lifetime, %d s", log_name(spawner), seconds
        )


def forget(spawner: Host, running: Runtime) -> None:
    """Forget how the last server ended: a new one starts."""
    running.accounts.ended.pop((spawner.user.name, spawner.name), None)


def told_after(spawner: Host, running: Runtime) -> str:
    """Say that the last server has reached its lifetime; "" if it hasn't."""
    seconds = running.accounts.ended.get((spawner.user.name, spawner.name))
    return messages.ended_after(seconds) if seconds else ""
