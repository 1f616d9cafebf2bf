"""Figures for Prometheus count each fact once, and name nobody."""

from prometheus_client import CollectorRegistry, generate_latest

from gpuspawner.use.metrics import Metrics
from tests.unit.use.facts import fact


def test_facts_are_counted_by_what_happened_and_why_and_not_by_names():
    registry = CollectorRegistry()
    metrics = Metrics(registry)

    for reason in ("busy", "busy", "limit"):
        metrics.count(fact("refused", reason=reason))
    metrics.count(fact("called", seconds=90.0))
    names = {"user": "ann-secret", "server": "thesis-secret", "node": "node-secret"}
    metrics.count(fact("started", **names, phases={"scheduled": 3.0, "prepared": 40.0}))

    def value(name, **labels):
        return registry.get_sample_value(f"jupyterhub_gpuspawner_{name}", labels)

    assert value("servers_total", happened="refused", reason="busy") == 2
    assert value("servers_total", happened="refused", reason="limit") == 1
    assert value("line_duration_seconds_sum") == 90
    assert value("start_phase_duration_seconds_bucket", phase="scheduled", le="5.0") == 1
    assert value("start_phase_duration_seconds_bucket", phase="prepared", le="30.0") == 0
    assert b"secret" not in generate_latest(registry)
