"""What the hub's ``/hub/metrics`` says of gpuspawner, with no names of people, servers or nodes."""

from jupyterhub.metrics import metrics_prefix
from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram

from gpuspawner.record import Fact, Happened

SUBSYSTEM = "gpuspawner"
_SECONDS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600)
_WAITS = (10, 60, 300, 900, 1800, 3600, 2 * 3600, 4 * 3600, 8 * 3600, 24 * 3600, 72 * 3600)


class Metrics:
    """The counters of one hub; each fact is counted once.

    Args:
        registry: Where `/hub/metrics` finds them.
    """

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self._happened = Counter(
            "servers",
            "What has happened to servers, by outcome, and why they were refused or have ended",
            ["happened", "reason"],
            namespace=metrics_prefix,
            subsystem=SUBSYSTEM,
            registry=registry,
        )
        self._phases = Histogram(
            "start_phase_duration_seconds",
            "How long each phase of a start took",
            ["phase"],
            namespace=metrics_prefix,
            subsystem=SUBSYSTEM,
            buckets=_SECONDS,
            registry=registry,
        )
        self._waits = Histogram(
            "line_duration_seconds",
            "How long those waited in line whose turn it was",
            namespace=metrics_prefix,
            subsystem=SUBSYSTEM,
            buckets=_WAITS,
            registry=registry,
        )

    def count(self, fact: Fact) -> None:
        """Count a fact."""
        self._happened.labels(fact.happened.value, fact.reason).inc()
        for phase, seconds in fact.phases.items():
            self._phases.labels(phase).observe(seconds)
        if fact.happened is Happened.CALLED:
            self._waits.observe(fact.seconds)
