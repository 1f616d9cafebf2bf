"""An open page of GPUs hears of each change."""

from functools import partial
from types import SimpleNamespace

import pytest

from gpuspawner.cluster.health import Stale
from gpuspawner.use.gpus_page import OpenFigures
from gpuspawner.use.live_census import LiveCensus
from gpuspawner.use.record import Record
from tests.unit.makers.hubs import StillHub
from tests.unit.use.facts import fact
from tests.unit.use.test_watching import Stage


class Opened:
    """A page that is open in a hub in which nothing but the use of GPUs changes."""

    def __init__(self, patch, watch=None, *, sees_names=True):
        self.users = {}
        hub = SimpleNamespace(db=None, tornado_settings={"users": self.users})
        still, self.record = StillHub(patch), Record()
        running = still.runtime(still.spawner(gpu_use=True))
        use = SimpleNamespace(running=running, record=self.record, watch=watch)
        use.census = LiveCensus(hub, running)
        self.view, self.now = running.view, 0.0
        self._figures = OpenFigures(use, sees_names=sees_names, clock=lambda: self.now)
        self._last = None

    async def is_told(self):
        """Return whether the page has heard of a change since the last call."""
        before, self._last = self._last, (await self._figures.answer()).found
        return before != self._last


async def test_an_open_page_is_told_when_the_use_of_a_server_changes_or_is_not_known(monkeypatch):
    stage = Stage(monkeypatch)
    page = Opened(monkeypatch, stage.watch)
    await stage.look(ann=0.0, bob=0.5)
    assert await page.is_told()

    await stage.look(ann=0.0, bob=0.5)
    assert not await page.is_told()
    await stage.look(ann=0.9, bob=0.5)
    assert await page.is_told()
    stage.now += 180
    assert await page.is_told()
    await stage.look(ann=0.9, bob=0.5)
    assert await page.is_told()


@pytest.mark.parametrize("sees_names", [True, False])
async def test_of_what_only_administrators_see_nobody_else_is_told(monkeypatch, sees_names):
    """Hundreds of pages would ask for their figures whenever anybody is refused."""
    page = Opened(monkeypatch, sees_names=sees_names)
    assert await page.is_told()
    assert not await page.is_told()

    page.record.note(fact("refused", reason="busy"))

    assert await page.is_told() == sees_names


@pytest.mark.parametrize("sees_names", [True, False])
async def test_who_sees_how_long_servers_run_is_told_every_minute(monkeypatch, sees_names):
    page = Opened(monkeypatch, sees_names=sees_names)
    assert await page.is_told()
    page.now += 59
    assert not await page.is_told()
    page.now += 1
    assert await page.is_told() == sees_names


@pytest.mark.parametrize("sees_names", [True, False])
async def test_in_an_outage_everybody_is_told_how_old_the_figures_are(monkeypatch, sees_names):
    page = Opened(monkeypatch, sees_names=sees_names)
    for age, told in ((70, True), (110, False), (130, True), (10_000, True)):
        monkeypatch.setattr(page.view, "health", partial(Stale, age, "no answer"))
        assert await page.is_told() == told


async def test_an_open_page_is_told_when_a_server_can_be_stopped(monkeypatch):
    """The hub calls it started a while after its pod runs, which is the last that changes."""
    page = Opened(monkeypatch)
    spawner = SimpleNamespace(pending="spawn", namespace="jhub", pod_name="jupyter-ann")
    page.users["ann"] = SimpleNamespace(spawners={"": spawner})
    assert await page.is_told()

    spawner.pending = None

    assert await page.is_told()
    assert not await page.is_told()
