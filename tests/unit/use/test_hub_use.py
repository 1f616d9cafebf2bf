"""What a hub has once that keeps a record of the use of GPUs."""

import asyncio
import io
import json
import logging
import threading
import time
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
from jupyter_events import EventLogger
from jupyterhub.app import JupyterHub
from prometheus_client import REGISTRY

from gpuspawner.troubles.facts import Happened
from gpuspawner.use import hub_use, record_files
from gpuspawner.use import record as record_module
from gpuspawner.use.gpu_use_config import UseRules
from gpuspawner.use.hub_use import SCHEMA_ID, HubEvents, HubUse
from gpuspawner.use.prometheus import Prometheus
from gpuspawner.use.record import Record
from gpuspawner.use.record_files import FactFiles
from tests.unit.makers.file_database import until
from tests.unit.makers.hubs import StillHub
from tests.unit.use.facts import fact
from tests.waiting import UNIT_PATIENCE

MEASURED = "http://127.0.0.1:1"


class Using:
    """A hub that begins to keep a record, and what earlier ones have kept.

    Attributes:
        begun: What runs beside, if the use of GPUs is measured.
    """

    def __init__(self, patch, folder):
        patch.setattr(REGISTRY, "register", lambda _: None)  # several hubs' metrics have one name
        still = StillHub(patch)
        self._running = still.runtime(still.spawner(gpu_use=True))
        self._folder = folder
        self.files, self.begun = FactFiles(folder, 30), []
        patch.setattr(self._running, "run", self.begun.append)

    def use(self, **rules):
        return HubUse(JupyterHub(), self._running, UseRules(directory=self._folder, **rules))

    @asynccontextmanager
    async def keeping(self, use):
        """Let the hub run for a while, and then end."""
        running = asyncio.create_task(use.run())
        try:
            yield running
        finally:
            running.cancel()
            await asyncio.wait({running})
            for beside in self.begun:
                beside.close()


@pytest.fixture
def using(monkeypatch, tmp_path):
    return Using(monkeypatch, tmp_path)


async def test_a_new_hub_takes_over_what_happened_and_who_keeps_a_server(using):
    kept = fact("kept", time.time(), seconds=3600)
    using.files.append([kept])
    use = using.use(prometheus=MEASURED)

    assert not using.begun  # it looks only once it knows who keeps a server

    async with using.keeping(use):
        await until(lambda: using.begun)

    assert list(use.record.facts) == [kept]
    left = use.watch._earlier["ann", ""].kept_until - use.watch._clock()
    assert 3590 < left <= 3600


async def test_who_keeps_a_server_is_known_however_often_somebody_was_refused_since(
    using, monkeypatch
):
    now = time.time()
    for module in hub_use, record_module:
        monkeypatch.setattr(module, "MOST_FACTS", 5)
    using.files.append([fact("kept", now - 60, seconds=3600)])
    using.files.append([fact("refused", now, "bob") for _ in range(9)])
    use = using.use(prometheus=MEASURED)

    async with using.keeping(use):
        await until(lambda: using.begun)

    assert ("ann", "") in use.watch._earlier


async def test_the_use_is_that_of_the_series_with_the_configured_labels(using, monkeypatch):
    asked = []

    async def ask(_, query):
        asked.append(query)
        return []

    monkeypatch.setattr(Prometheus, "_ask", ask)
    use = using.use(prometheus=MEASURED, prometheus_labels={"cluster": "prod"})

    await use.watch._source.window(3600)

    assert ['{cluster="prod"' in it for it in asked] == 6 * [True]


def test_idle_gpus_are_named_as_the_hub_s_census_names_them(using):
    use = using.use(prometheus=MEASURED)

    assert use.watch._counted_as == use.census.counted_as


async def test_what_an_earlier_hub_noted_of_a_server_ends_with_it(using):
    """The watch may not have seen its pod yet; the next server of its name isn't kept for it."""
    now = time.time()
    using.files.append([fact("granted", now - 60), fact("kept", now, seconds=3600.0)])
    use = using.use(prometheus=MEASURED)

    async with using.keeping(use):
        await until(lambda: using.begun)
        use.record.note(fact("started", now))
        assert ("ann", "") in use.watch._earlier
        use.record.note(fact("ended", now))
        assert ("ann", "") not in use.watch._earlier


async def test_an_end_that_is_noted_while_the_files_are_read_is_kept_in_them(using):
    now = time.time()
    using.files.append([fact("granted", now - 60)])
    use = using.use()

    async with using.keeping(use):
        use.record.note(fact("ended", now, reason="deleted"))
        await until(lambda: use.record.facts)

    _, end = using.files.read(10)
    assert (end.happened, end.reason, round(end.seconds)) == (Happened.ENDED, "deleted", 60)


async def no_thread(*_):
    raise RuntimeError("can't start new thread")


async def test_a_hub_without_threads_to_read_an_earlier_record_begins_one(using, monkeypatch):
    monkeypatch.setattr(record_files, "_SECONDS", 0.01)
    monkeypatch.setattr(hub_use, "aside", no_thread)
    use = using.use()

    async with using.keeping(use) as running:
        await asyncio.wait({running}, timeout=0.1)
        assert not running.done()
        use.record.note(fact("granted", time.time()))
        await until(lambda: using.files.read(10))


async def test_idle_servers_are_looked_for_also_if_a_disk_hangs(using, monkeypatch, caplog):
    """Until the first look, the culler stops no server with a GPU."""
    ends = threading.Event()
    monkeypatch.setattr(hub_use, "_PATIENCE", 0.01)
    monkeypatch.setattr(FactFiles, "read", lambda *_: ends.wait() and [])

    async with using.keeping(using.use(prometheus=MEASURED)):
        await until(lambda: using.begun)
        ends.set()

    assert "gpu_use.directory: the earlier record can't be read: TimeoutError()" in caplog.text


async def test_what_is_noted_before_the_files_are_read_is_kept_if_the_hub_ends(using, monkeypatch):
    """Also an end: the next hub reads whether that server ever began."""
    now, reads, ends = time.time(), threading.Event(), threading.Event()
    using.files.append([fact("granted", now - 60)])

    def hang(*_):
        reads.set()
        ends.wait()
        return []

    use = using.use()
    with monkeypatch.context() as patch:
        patch.setattr(FactFiles, "read", hang)
        async with using.keeping(use):
            assert await asyncio.to_thread(reads.wait, UNIT_PATIENCE)
            use.record.note(fact("ended", now, reason="deleted"))
            use.record.note(fact("granted", now + 1))
    ends.set()

    next_hub = Record()
    next_hub.restore(using.files.read(10))
    assert [it.happened.value for it in next_hub.facts] == ["granted", "ended", "granted"]


async def test_what_is_told_in_turns_is_written_meanwhile(using, monkeypatch):
    """An administrator's handler may take its time, and the hub may be killed."""
    monkeypatch.setattr(record_files, "_SECONDS", 0.01)
    now, many, heard = time.time(), 300, []
    everybody = [f"user-{number}" for number in range(many)]
    using.files.append([fact("granted", now - 60, it) for it in everybody])
    use = using.use()

    def handle(fact):
        heard.append(fact)
        time.sleep(0.001)

    use.record.read_by(handle)
    for user in everybody:
        use.record.note(fact("ended", now, user, reason="deleted"))
    async with using.keeping(use), asyncio.timeout(30):
        while len(heard) < many == len(using.files.read(1000)):  # noqa: ASYNC110, it tells nobody
            await asyncio.sleep(0)
        told = len(heard)

    assert told < many
    assert [it.user for it in heard] == everybody
    assert len(using.files.read(1000)) == 2 * many


@pytest.mark.parametrize("happened", list(Happened))
def test_each_fact_is_an_event_that_fits_the_schema(happened):
    written = io.StringIO()
    hub = SimpleNamespace(eventlog=EventLogger(handlers=[logging.StreamHandler(written)]))

    HubEvents(hub).emit(
        fact(happened, reason="busy", accelerator="a100", gpus=2, phases={"scheduled": 1.5})
    )

    event = json.loads(written.getvalue())
    assert event["__schema__"] == SCHEMA_ID
    assert (event["happened"], event["user"], event["server"]) == (happened.value, "ann", "")
    assert event["__timestamp__"].startswith("1970-01-12T13:46:40")


def test_without_handlers_or_a_logger_nothing_happens():
    HubEvents(SimpleNamespace()).emit(fact("granted"))
    HubEvents(SimpleNamespace(eventlog=EventLogger())).emit(fact("granted"))
