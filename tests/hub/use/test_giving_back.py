"""Idle GPUs are given back: a real hub, the real culler, a real Prometheus, a played exporter."""

import re
import sys
import time

import pytest

from tests.fixtures.prometheus import PlayedExporter, running_prometheus
from tests.hub.configurations import T4, t4_nodes
from tests.waiting import wait_for

HUB = """
c.JupyterHub.cleanup_servers = False
c.JupyterHub.authenticate_prometheus = False
c.GPUSpawner.gpu_use = {{
    "prometheus": {prometheus!r},
    "prometheus_labels": {{"job": "dcgm"}},
    "directory": {directory!r},
    # One text: two threads that print several at once mix them.
    "notify": lambda it: print(f"NOTIFIED {{it['user']}} {{it['stops_in_seconds']}}", flush=True),
}}
c.GPUSpawner.policies = {{"idle": {{"idle": {{"after": "1m", "warning": "1m", "keeps": 1}}}}}}
c.JupyterHub.services.append({{"name": "idle-culler", "command": [
    {python!r}, "-m", "jupyterhub_idle_culler", "--config={culler}", "--cull-every=2"]}})
c.JupyterHub.load_roles.append({{"name": "idle-culler", "services": ["idle-culler"], "scopes": [
    "list:users", "read:users:activity", "read:servers", "delete:servers",
    "custom:gpuspawner:read:use"]}})
"""
CULLER = """
from gpuspawner.use.arbiter import gives_back

c.IdleCuller.cull_arbiter_hook = gives_back
c.IdleCuller.timeout = 3600
"""
_MINUTES = 60.0


@pytest.fixture
def exporter():
    made = PlayedExporter()
    yield made
    made.server.shutdown()


@pytest.fixture
def prometheus(tmp_path, exporter):
    (tmp_path / "prometheus").mkdir()
    with running_prometheus(tmp_path / "prometheus", exporter.port) as running:
        yield running


def configuration(folder, prometheus):
    (folder / "culler.py").write_text(CULLER)
    return T4 + HUB.format(
        prometheus=prometheus.address,
        directory=str(folder / "use"),
        python=sys.executable,
        culler=folder / "culler.py",
    )


@pytest.mark.nightly("a policy's least time is a minute, and three of them pass")
def test_idle_gpus_are_given_back_after_a_warning_and_jobs_go_on(
    start_gpu_hub,
    add_nodes,
    cluster,  # noqa: ARG001
    tmp_path,
    exporter,
    prometheus,
):
    add_nodes(t4_nodes(4, 1))
    with start_gpu_hub(configuration(tmp_path, prometheus)) as hub:
        prometheus.scrape(hub.direct)
        for user in ("idle", "kept", "job", "dark"):
            hub.start_until_ready(user, {"accelerator": "t4"})
        namespace = hub.pods.namespace
        # A job that has computed within the last minute, without anybody at its page; of the GPU
        # of "dark", the exporter never says a word.
        exporter.say(namespace, idle=0, kept=0, job=0.8)
        owner = hub.person("kept").log_in()
        warned = wait_for(lambda: _warning(owner.open("/hub/home").html), timeout=5 * _MINUTES)

        page = owner.open(warned)
        assert "hasn't used its GPU for 1 minute" in page.text
        assert "You can do this once." in page.text
        kept = owner.session.post(f"{hub.url}{warned}", data={"_xsrf": owner.xsrf})
        assert "is kept for 1 minute from now" in kept.text
        assert "used its GPU" not in owner.open("/hub/home").text

        wait_for(lambda: "jupyter-idle" not in hub.pods.names(), timeout=5 * _MINUTES)
        assert hub.pods.names() >= {"jupyter-job", "jupyter-dark"}
        assert "NOTIFIED idle 60" in hub.log
        assert "NOTIFIED job" not in hub.log
        assert "NOTIFIED dark" not in hub.log

        # Prometheus knows it too, and names nobody.
        happened = "jupyterhub_gpuspawner_servers_total"
        wait_for(lambda: prometheus.ask(f'{happened}{{happened="kept"}} == 1'))
        labels = [label for it in prometheus.ask(happened) for label in it["metric"].values()]
        assert not {"idle-user", *hub.pods.names()} & set(labels)


@pytest.mark.nightly("a policy's least time is a minute, and more than two pass")
def test_nobody_is_warned_or_stopped_while_the_exporter_is_down_or_says_what_can_not_be(
    start_gpu_hub,
    add_nodes,
    cluster,  # noqa: ARG001
    tmp_path,
    exporter,
    prometheus,
):
    add_nodes(t4_nodes(3, 1))
    with start_gpu_hub(configuration(tmp_path, prometheus)) as hub:
        for user in ("nan", "negative", "other"):
            hub.start_until_ready(user, {"accelerator": "t4"})
        exporter.say(hub.pods.namespace, nan="NaN", negative=-1, another=0)

        time.sleep(2.5 * _MINUTES)  # nothing may happen, so there is nothing to wait for

        assert "NOTIFIED" not in hub.log
        assert hub.pods.names() == {"jupyter-nan", "jupyter-negative", "jupyter-other"}


def _warning(html):
    found = re.search(r'href="(/hub/gpuspawner/keep/[^"]+)"', html)
    return found[1] if found else None
