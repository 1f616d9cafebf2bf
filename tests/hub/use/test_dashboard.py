"""Each expression of the dashboard and of the alert rules, in a real Prometheus with a real hub."""

import subprocess

import pytest

from tests.docs.test_grafana import FOLDER, expressions
from tests.fixtures.prometheus import PlayedExporter, program, running_prometheus
from tests.hub.configurations import T4, t4_nodes
from tests.waiting import wait_for

HUB = """
c.JupyterHub.authenticate_prometheus = False
c.GPUSpawner.queue = True
c.GPUSpawner.autoscaling = "none"
c.GPUSpawner.gpu_use = {{"prometheus": {prometheus!r}}}
"""
OF_GRAFANA = {"$__rate_interval": "1m", "$accelerator": ".*"}


def as_asked(expression):
    """Return an expression with values for Grafana's variables."""
    for variable, value in OF_GRAFANA.items():
        expression = expression.replace(variable, value)
    return expression


@pytest.mark.nightly("it fetches Prometheus")
def test_each_expression_is_one_and_says_what_happened_without_names(
    start_gpu_hub,
    add_nodes,
    cluster,  # noqa: ARG001
    tmp_path,
):
    promtool = program().with_name("promtool")
    subprocess.run([promtool, "check", "rules", FOLDER / "alerts.yaml"], check=True)
    add_nodes(t4_nodes(1, 1))
    exporter = PlayedExporter()
    with (
        running_prometheus(tmp_path, exporter.port) as prometheus,
        start_gpu_hub(T4 + HUB.format(prometheus=prometheus.address)) as hub,
    ):
        prometheus.scrape(hub.direct)
        hub.start_until_ready("holder", {"accelerator": "t4"})
        assert hub.start("refused", {"accelerator": "t4", "gpus": 2}).status_code == 409
        hub.start("waits", {"accelerator": "t4", "wait": True})

        name = "jupyterhub_gpuspawner_"
        happened = (
            f'{name}gpus{{accelerator="t4",state="ours"}} == 1',
            f'{name}servers_total{{happened="refused",reason="impossible"}} == 1',
            f'{name}servers_total{{happened="started"}} == 1',
            f"{name}line_servers == 1",
            f"{name}view_age_seconds < 60",
            f'{name}start_phase_duration_seconds_count{{phase="answered"}} == 1',
        )
        wait_for(lambda: all(map(prometheus.ask, happened)))
        for expression in expressions():
            prometheus.ask(as_asked(expression))  # raises if it is none
        series = prometheus.ask(f'{{__name__=~"{name}.*"}}')
        assert len(series) < 500
        said = {value for it in series for value in it["metric"].values()}
        assert not {"holder", "refused-user", "jupyter-holder", "waits"} & said
    exporter.server.shutdown()
