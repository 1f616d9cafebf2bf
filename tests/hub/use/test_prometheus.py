"""What a real Prometheus answers about GPUs whose exporter is replaced."""

import time

import pytest

from gpuspawner.use.prometheus import ENGINE, UTILIZATION, Prometheus
from tests.fixtures.prometheus import running_prometheus

KEY = "hub", "jupyter-ann"
HOUR, HALF = 3600, 1800
_NOBODY = 1
"""A port on which no exporter listens: all is from before."""


def scraped(exporter, times, *, honours, metric=ENGINE):
    """Yield what Prometheus has of ann's GPU from one pod of the exporter's; nothing computes."""
    own = {"pod": "jupyter-ann", "namespace": "hub"}
    others = {"pod": f"dcgm-exporter-{exporter}", "namespace": "gpu-operator"}
    exported = {f"exported_{name}": value for name, value in own.items()}
    labels = {"UUID": "GPU-1", "job": "dcgm", "instance": f"10.0.0.{exporter}:9400"}
    labels |= own if honours else {**others, **exported}
    written = ",".join(f'{name}="{value}"' for name, value in labels.items())
    yield from (f"{metric}{{{written}}} 0 {at}" for at in times)


async def devices(folder, samples, **its):
    with running_prometheus(folder, _NOBODY, samples) as running:
        return (await Prometheus(running.address, **its).window(HOUR)).devices[KEY]


@pytest.mark.parametrize("honours", [True, False], ids=["honoured labels", "exported labels"])
@pytest.mark.parametrize("metric", [ENGINE, UTILIZATION])
async def test_a_gpu_stays_known_while_a_new_pod_of_the_exporter_s_follows_an_old_one(
    honours, metric, tmp_path
):
    """Each has series of its own, and half of the hour."""
    now = round(time.time())
    old, new = range(now - 2 * HOUR, now - HALF - 30, 30), range(now - HALF, now, 30)
    samples = [
        *scraped(1, old, honours=honours, metric=metric),
        *scraped(2, new, honours=honours, metric=metric),
    ]

    (device,) = await devices(tmp_path, samples, labels={"job": "dcgm"})

    assert (device.used, device.known) == (0, 1)


async def test_a_gap_of_two_exporters_side_by_side_is_one(tmp_path):
    now = round(time.time())
    times = [*range(now - 2 * HOUR, now - HALF, 30), *range(now - HALF // 2, now, 30)]
    samples = [it for number in (1, 2) for it in scraped(number, times, honours=False)]

    (device,) = await devices(tmp_path, samples)

    assert 0.7 < device.known < 0.9
