"""What the hub's ``/hub/metrics`` says of gpuspawner, with no names of people, servers or nodes."""

from collections.abc import Iterator
from typing import Any

from jupyterhub.metrics import metrics_prefix
from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from gpuspawner.cluster.health import Live, Stale
from gpuspawner.cluster.kinds import KINDS
from gpuspawner.runtime import Runtime
from gpuspawner.troubles.facts import Fact, Happened
from gpuspawner.use.census import Census, Held
from gpuspawner.use.live_census import LiveCensus
from gpuspawner.use.watching import UseWatch

SUBSYSTEM = "gpuspawner"
_SECONDS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600)
_WAITS = (10, 60, 300, 900, 1800, 3600, 2 * 3600, 4 * 3600, 8 * 3600, 24 * 3600, 72 * 3600)


class Metrics:
    """The counters of one hub; each fact is counted once.

    Args:
        registry: Where `/hub/metrics` finds them.
    """

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        our: dict[str, Any] = {
            "namespace": metrics_prefix, "subsystem": SUBSYSTEM, "registry": registry
        }  # fmt: skip
        self._happened = Counter(
            "servers",
            "What has happened to servers, by outcome, and why they were refused or have ended",
            ["happened", "reason"],
            **our,
        )
        text = "How long each phase of a start took"
        self._phases = Histogram(
            "start_phase_duration_seconds", text, ["phase"], buckets=_SECONDS, **our
        )
        text = "How long people waited in line until it was their turn"
        self._waits = Histogram("line_duration_seconds", text, buckets=_WAITS, **our)

    def count(self, fact: Fact) -> None:
        """Count a fact."""
        self._happened.labels(fact.happened.value, fact.reason).inc()
        for phase, seconds in fact.phases.items():
            self._phases.labels(phase).observe(seconds)
        if fact.happened is Happened.CALLED:
            self._waits.observe(fact.seconds)


MOST_ACCELERATORS = 60
"""How many accelerators have figures of their own, those with most GPUs; all others have one sum.

It bounds the series: six for each.
"""
_OTHERS = "others"


class Gauges:
    """How the cluster is at the moment of a scrape: a collector of prometheus_client.

    Args:
        watch: Whether GPUs are used; None if nobody can say.
        registry: As that of `Metrics`.
    """

    def __init__(
        self,
        running: Runtime,
        live: LiveCensus,
        watch: UseWatch | None = None,
        registry: CollectorRegistry = REGISTRY,
    ) -> None:
        self._running = running
        self._live = live
        self._watch = watch
        registry.register(self)

    def describe(self) -> tuple[Metric, ...]:
        """Collect nothing when this is registered: the cluster isn't known yet."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield the figures. It counts nothing itself, so that a scrape is short."""
        text = "GPUs by accelerator and state"
        gpus = GaugeMetricFamily(_name("gpus"), text, labels=["accelerator", "state"])
        for key, held in _listed(self._live.last):
            for state, amount in zip(Held._fields, held, strict=True):
                gpus.add_metric([key, state], amount)
        yield gpus
        running = self._running
        text = "Servers that wait in line"
        yield GaugeMetricFamily(_name("line_servers"), text, len(running.preflight.line))
        text = "Dry runs that the API server has been asked for"
        yield CounterMetricFamily(_name("dry_runs"), text, running.dry_runs.sent)
        if self._watch is not None:
            text = "How long servers have had GPUs that weren't used, by accelerator"
            idle = CounterMetricFamily(_name("idle_gpu_seconds"), text, labels=["accelerator"])
            for key, seconds in self._watch.idle_gpu_seconds.items():
                idle.add_metric([key], seconds)
            yield idle
        yield from self._view()

    def _view(self) -> Iterator[Metric]:
        health = self._running.view.health()
        text = "How old the view of the cluster is; NaN if it can't be read"
        age = health.age if isinstance(health, Live | Stale) else float("nan")
        yield GaugeMetricFamily(_name("view_age_seconds"), text, age)
        objects = GaugeMetricFamily(
            _name("view_objects"), "Objects that the hub knows of the cluster", labels=["kind"]
        )
        state = self._running.view.state
        counts = {kind.name: len(state.all(kind.name)) for kind in KINDS[2:]}
        pods = len(state.pods) + len(state.unbound_pods)
        for kind, count in {"Node": len(state.nodes), "Pod": pods, **counts}.items():
            objects.add_metric([kind], count)
        yield objects


def _name(name: str) -> str:
    return f"{metrics_prefix}_{SUBSYSTEM}_{name}"


def _listed(census: Census) -> Iterator[tuple[str, Held]]:
    found: dict[str, Held] = {}
    most_first = sorted(census.accelerators, key=lambda it: -sum(it.held))
    for number, it in enumerate(most_first):
        key = it.key if number < MOST_ACCELERATORS else _OTHERS
        found[key] = Held(*map(sum, zip(found.get(key, Held()), it.held, strict=True)))
    yield from found.items()
