"""Describes the view's health for administrators, and logs each change of it in one line."""

import logging
import math
from collections.abc import Callable, Sequence

from gpuspawner.cluster.client import GONE, RequestError
from gpuspawner.cluster.health import (
    Forbidden,
    Health,
    Live,
    Reading,
    Stale,
    Unreachable,
    is_broken,
    is_forbidden,
    is_gone,
    is_open,
)
from gpuspawner.cluster.reflector import Reflector

log = logging.getLogger(__name__)

UNCHECKED = "the hub starts servers without checking for room until"
_UNCHECKED_SERVERS = "it starts servers whose placement depends on them without checking for room"
_UNKNOWN = "what depends on them is unknown"


class HealthLog:
    """Logs a change once, no matter how often reading is retried or how long the state lasts.

    Args:
        reflectors: Follow all kinds of the view.
        others: Returns those that follow objects of autoscalers and of Kueue.
    """

    def __init__(
        self, reflectors: Sequence[Reflector], others: Callable[[], Sequence[Reflector]] = tuple
    ) -> None:
        self._required = [reflector for reflector in reflectors if reflector.kind.required]
        self._optional = [reflector for reflector in reflectors if not reflector.kind.required]
        self._others = others
        self._said: tuple[object, ...] = ()
        self._forbidden: frozenset[str] = frozenset()
        self._seen: list[tuple[object, ...]] = []
        self._has_been_live = False
        self._missing: set[str] = set()
        """The rights that the log calls missing, of those that not every verdict needs."""
        self._broken: set[str] = set()
        """The optional kinds that the log calls broken."""
        self._outdated: set[RequestError | None] = set()
        """What the API server said before the view was live again; rights may be back since."""

    def tell(self, health: Health) -> None:
        """Log the health if it has changed, and rights that are lost or back."""
        self._tell_health(health)
        reflectors = (*self._optional, *self._others())
        seen = [self._said, *((it.error, it.gap, it.listed, is_broken(it)) for it in reflectors)]
        if seen == self._seen:  # none of the many changes of the state is one of rights
            return
        self._seen = seen
        # Most clusters lack some of the others, and a hub may never have had the right to them.
        followed = [*self._optional, *(it for it in self._others() if it.listed)]
        if self._said[:1] == (Live,):
            self._tell_rights(followed)
            self._tell_broken(followed)
        elif self._has_been_live:
            self._outdated = {it.error for it in followed if it.error}

    def _tell_health(self, health: Health) -> None:
        """Log the health if it has changed and no answer is missing for the line."""
        kinds = health.kinds if isinstance(health, Forbidden) else ()
        what = (type(health), kinds, self._is_expired(health))
        # The last line has already named all kinds that are missing now.
        is_partly_back = bool(kinds) and self._forbidden.issuperset(kinds)
        if what == self._said or is_partly_back or self._is_half_known(health):
            return
        self._said, self._forbidden = what, frozenset(kinds)
        self._has_been_live |= isinstance(health, Live)
        level = logging.INFO if isinstance(health, Live | Reading) else logging.WARNING
        log.log(level, "%s", explain_health(health))

    def _tell_rights(self, followed: Sequence[Reflector]) -> None:
        if any(it.error in self._outdated for it in followed):
            return
        lost = [it for it in followed if is_forbidden(it) and _name(it) not in self._missing]
        back = [it for it in followed if _is_read(it) and _name(it) in self._missing]
        self._missing = (self._missing | set(map(_name, lost))) - set(map(_name, back))
        self._warn([it for it in lost if it in self._optional], _UNCHECKED_SERVERS)
        self._warn([it for it in lost if it not in self._optional], _UNKNOWN)
        if back:
            log.info("The hub may now list and watch %s.", ", ".join(map(_name, back)))

    def _tell_broken(self, followed: Sequence[Reflector]) -> None:
        """Log which optional kinds can't be read while the view is live."""
        # Of the others, a program that is removed takes its API away.
        optional = [it for it in followed if it in self._optional or not is_gone(it)]
        broken = {_name(it): it for it in optional if is_broken(it) and not _may_settle(it)}
        for name in sorted(broken.keys() - self._broken):
            effect = _UNCHECKED_SERVERS if broken[name] in self._optional else _UNKNOWN
            why = broken[name].error
            log.warning("The hub can't read %s (%s); %s until it can.", name, why, effect)
        back = {_name(it) for it in optional if _is_read(it) or it.absent} & self._broken
        if back:
            log.info("The hub reads %s again.", ", ".join(sorted(back)))
        forbidden = {_name(it) for it in optional if is_forbidden(it)}  # another line says so
        self._broken = (self._broken | broken.keys()) - back - forbidden

    def _warn(self, lost: Sequence[Reflector], effect: str) -> None:
        if lost:
            log.warning(
                "The hub isn't allowed to list and watch %s; %s until a ClusterRole grants it.",
                ", ".join(map(_name, lost)),
                effect,
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


def _may_settle(reflector: Reflector) -> bool:
    """Whether a watch works again, or the next answer tells more.

    That is so if what was read is forbidden now, or if its history is lost, as after an outage.
    """
    is_unsettled = reflector.error is not None and reflector.error.status in (403, GONE)
    return is_unsettled or math.isinf(reflector.lost)


def _is_read(reflector: Reflector) -> bool:
    return reflector.listed and not reflector.gap and reflector.error is None


def _name(reflector: Reflector) -> str:
    """Return the resource as RBAC names it, with what selects the objects."""
    kind = reflector.kind
    return f"{kind.plural} ({kind.field_selector})" if kind.field_selector else kind.plural


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
                f"{UNCHECKED} a ClusterRole grants it, such as the one that gpuspawner rbac prints."
            )
        case Unreachable(text):
            return f"The hub can't read the cluster ({text}); {UNCHECKED} it can."
