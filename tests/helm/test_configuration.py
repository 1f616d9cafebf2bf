"""The configuration that the chart's hub makes from our values."""

from __future__ import annotations

import pytest
from traitlets.config import Config

from gpuspawner import GPUSpawner
from gpuspawner.configuration import ConfigurationError
from gpuspawner.offers.shapes import OfferError
from tests.helm.chart import CLOUDS, Values, merged, read


def configured(*files: Values) -> Config:
    """Return the configuration as files/hub/jupyterhub_config.py of the chart 4.4.0 makes it.

    First come the chart's defaults, then the sections of hub.config, then the entries of
    hub.extraConfig, each sorted by name.
    """
    hub = merged(*files)["hub"]
    c = Config()
    c.JupyterHub.spawner_class = "kubespawner.KubeSpawner"
    c.KubeSpawner.start_timeout = 300
    for name, section in sorted(hub["config"].items()):
        c[name].update(section)
    for _, program in sorted(hub["extraConfig"].items()):
        exec(program, {"c": c, "get_config": None})
    return c


@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_hub_starts_with_each_cloud(cloud: str):
    c = configured(read("base"), read(cloud))

    assert c.JupyterHub.spawner_class is GPUSpawner


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ({"GPUSpawnr": {"accelerators": {}}}, "GPUSpawner"),
        ({"GPUSpawner": {"acelerators": {}}}, "accelerators"),
        ({"GPUSpawner": {"start_timeout": "soon"}}, "start_timeout"),
        ({"GPUSpawner": {"accelerators": {"t4": {"counts": [0]}}}}, "counts"),
        ({"KubeSpawner": {"profile_list": [{"display_name": "CPU"}]}}, "profile_list"),
    ],
)
def test_an_error_that_the_charts_schema_misses_stops_the_hub(section: Values, told: str):
    with pytest.raises((ConfigurationError, OfferError), match=told):
        configured(read("base"), read("gke"), {"hub": {"config": section}})
