"""How long each phase of a start may take, and all of them together."""

import math
from collections.abc import Mapping

from gpuspawner.launch.limits import Phase
from gpuspawner.preflight.decision import Wait
from gpuspawner.spawn.attempt import Attempt
from gpuspawner.spawn.host import Host


def limits(spawner: Host, attempt: Attempt) -> Mapping[Phase, float]:
    """Return the limit of each phase, in seconds.

    KubeSpawner's ``start_timeout`` is the limit of the containers' start. A pod of which nobody
    knows whether it fits waits for a node as long as with KubeSpawner.
    """
    scheduled = spawner.scheduling_timeout if attempt.is_promised else attempt.starting
    for_a_node = attempt.seconds_for_a_node
    waits = isinstance(attempt.decision, Wait)
    return {
        Phase.SCHEDULED: for_a_node if waits else max(scheduled, for_a_node),
        Phase.PREPARED: spawner.preparing_timeout,
        Phase.STARTED: attempt.starting,
        Phase.ANSWERED: float(spawner.http_timeout),
    }


def total(phases: Mapping[Phase, float]) -> int:
    """Return the seconds of all phases; the hub and KubeSpawner give a start up after these."""
    return math.ceil(sum(phases.values()))
