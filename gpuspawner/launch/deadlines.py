"""How long each phase of a start may take, and all of them together."""

import math
from collections.abc import Mapping

from gpuspawner.compat.hub_limits import preparing_seconds
from gpuspawner.preflight.decision import Wait
from gpuspawner.start.attempt import Attempt
from gpuspawner.start.host import Host
from gpuspawner.traits import OFF
from gpuspawner.traits.trait_types import setting
from gpuspawner.troubles.limits import StartPhase

_LONGEST = 10.0**8
"""In seconds, three years: administrators may set infinity, which the hub's timeout can't be."""


def limits(spawner: Host, attempt: Attempt) -> Mapping[StartPhase, float]:
    """Return the limit of each phase, in seconds.

    KubeSpawner's ``start_timeout`` is the limit of the containers' start. If nobody knows whether
    the pod fits, it waits for a node as long as with KubeSpawner. Nothing limits the wait in a
    queue of Kueue.
    """
    for_a_node, decision = attempt.seconds_for_a_node, attempt.decision
    if isinstance(decision, Wait):
        scheduled: float = for_a_node
    else:
        others = decision.seconds_to_make_room
        is_judged = others is not None and setting(spawner, "preflight") != OFF
        known = (
            setting(spawner, "scheduling_timeout") + (others or 0)
            if is_judged
            else attempt.starting
        )
        scheduled = max(known, for_a_node)
    return {
        StartPhase.QUEUED: _LONGEST if attempt.may_queue else 0.0,
        StartPhase.SCHEDULED: scheduled,
        StartPhase.PREPARED: preparing_seconds(
            setting(spawner, "preparing_timeout"), attempt.starting
        ),
        StartPhase.STARTED: attempt.starting,
        StartPhase.ANSWERED: float(spawner.http_timeout),
    }


def total(phases: Mapping[StartPhase, float]) -> int:
    """Return the seconds of all phases; the hub and KubeSpawner give a start up after these."""
    return math.ceil(min(sum(phases.values()), _LONGEST))
