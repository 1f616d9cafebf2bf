"""Describes the view's health for administrators, and logs each change of it in one line."""

import logging
from collections.abc import Sequence

from gpuspawner.cluster.health import (
    Forbidden,
    Health,
    Live,
    Reading,
    Stale,
    Unreachable,
    is_forbidden,
    is_open,
)
from gpuspawner.cluster.reflector import Reflector

log = logging.getLogger(__name__)

UNCHECKED = "the hub starts servers without checking for room until"


class HealthLog:
    """Logs a change once, no matter how often reading is retried or how long the state lasts.

    Args:
        reflectors: Follow all kinds of the view.
    """

    def __init__(self, reflectors: Sequence[Reflector]) -> None:
        self._required = [reflector for reflector in reflectors if reflector.kind.required]
        self._optional = [reflector for reflector in reflectors if not reflector.kind.required]
        self._said: tuple[object, ...] = ()

    def tell(self, health: Health) -> None:
        """Log the health if it has changed and no answer is missing for the line."""
        what = (type(health), getattr(health, "kinds", ()), self._is_expired(health))
        if what == self._said or self._is_half_known(health):
            return
        self._said = what
        level = logging.INFO if isinstance(health, Live | Reading) else logging.WARNING
        log.log(level, "%s", explain_health(health))
        if isinstance(health, Live):
            self._tell_missing()

    def _tell_missing(self) -> None:
        missing = [reflector.kind.plural for reflector in self._optional if is_forbidden(reflector)]
        if missing:
            log.warning(
                "The hub isn't allowed to list and watch %s; it starts servers whose placement "
                "depends on them without checking for room until a ClusterRole grants it.",
                ", ".join(missing),
            )

    def _is_half_known(self, health: Health) -> bool:
        """Whether the same line could say more a moment later."""
        if isinstance(health, Reading):
            return False
        return any(map(is_open, self._optional if isinstance(health, Live) else self._required))

    def _is_expired(self, health: Health) -> bool:
        """Whether the credentials are wrong; the texts of other errors vary from try to try."""
        errors = [reflector.error for reflector in self._required if reflector.error]
        return isinstance(health, Stale | Unreachable) and any(e.status == 401 for e in errors)


def explain_health(health: Health) -> str:
    """Describe the health in one line, with the condition that ends a fault."""
    match health:
        case Live():
            return "The view of the cluster is live."
        case Reading(seconds):
            so_far = f" ({seconds:.0f} s so far)" if seconds >= 1 else ""
            return f"The hub is still reading the cluster{so_far}."
        case Stale(age, why):
            return (
                f"The view of the cluster is {age:.0f} s old ({why}); {UNCHECKED} the view is live "
                "again."
            )
        case Forbidden(kinds, text):
            return (
                f"The hub isn't allowed to list and watch {' and '.join(kinds)} ({text}); "
                f"{UNCHECKED} a ClusterRole grants it, such as the one in helm-values/rbac.yaml."
            )
        case Unreachable(text):
            return f"The hub can't read the cluster ({text}); {UNCHECKED} it can."
