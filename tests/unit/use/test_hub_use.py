"""What a hub has once that keeps a record of the use of GPUs."""

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from jupyterhub.app import JupyterHub
from prometheus_client import REGISTRY

from gpuspawner.troubles.facts import Fact, Happened
from gpuspawner.use import hub_use, record_files
from gpuspawner.use.gpu_use_config import UseRules
from gpuspawner.use.hub_use import HubUse
from gpuspawner.use.prometheus import Prometheus
from gpuspawner.use.record import Record
from gpuspawner.use.record_files import FactFiles
from tests.unit.makers.file_database import until
from tests.unit.makers.hubs import StillHub
from tests.waiting import UNIT_PATIENCE


@pytest.fixture(autouse=True)
def several_hubs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let one process have several hubs, whose metrics have the same names."""
    monkeypatch.setattr(REGISTRY, "register", lambda _: None)


async def test_a_new_hub_takes_over_what_happened_and_who_keeps_a_server(
    tmp_path: Path, monkeypatch: Any
) -> None:
    now = time.time()
    kept = Fact(Happened.KEPT, now, user="ann", server="", seconds=3600)
    FactFiles(tmp_path, 30).append([kept])
    rules = UseRules(directory=tmp_path, prometheus="http://127.0.0.1:1")
    still = StillHub(monkeypatch)
    running, begun = still.runtime(still.spawner(gpu_use=True)), list[Any]()
    monkeypatch.setattr(running, "run", begun.append)
    use = HubUse(JupyterHub(), running, rules)
    assert use.watch is not None

    assert not begun  # it looks only once it knows who keeps a server

    keeping = asyncio.create_task(use.run())
    while not begun:  # noqa: ASYNC110, it tells nobody
        await asyncio.sleep(0.01)
    keeping.cancel()
    for beside in begun:
        beside.close()

    assert list(use.record.facts) == [kept]
    left = use.watch._earlier["ann", ""].kept_until - use.watch._clock()
    assert 3590 < left <= 3600


async def test_the_use_is_that_of_the_series_with_the_configured_labels(monkeypatch: Any) -> None:
    asked = list[str]()

    async def ask(_: object, query: str) -> list[Any]:
        asked.append(query)
        return []

    monkeypatch.setattr(Prometheus, "_ask", ask)
    still = StillHub(monkeypatch)
    rules = UseRules(prometheus="http://127.0.0.1:1", prometheus_labels={"cluster": "prod"})
    use = HubUse(JupyterHub(), still.runtime(still.spawner(gpu_use=True)), rules)
    assert use.watch is not None

    await use.watch._source.window(3600)

    assert ['{cluster="prod"}' in it for it in asked] == 4 * [True]


def test_idle_gpus_are_named_as_the_hub_s_census_names_them(monkeypatch: Any) -> None:
    still = StillHub(monkeypatch)
    rules = UseRules(prometheus="http://127.0.0.1:1")
    use = HubUse(JupyterHub(), still.runtime(still.spawner(gpu_use=True)), rules)
    assert use.watch is not None

    assert use.watch._counted_as == use.census.counted_as


async def test_what_an_earlier_hub_noted_of_a_server_ends_with_it(
    tmp_path: Path, monkeypatch: Any
) -> None:
    """The watch may not have seen its pod yet; the next server of its name isn't kept for it."""
    now = time.time()
    before = [(Happened.GRANTED, now - 60, 0.0), (Happened.KEPT, now, 3600.0)]
    facts = [Fact(it, at, user="ann", seconds=seconds) for it, at, seconds in before]
    FactFiles(tmp_path, 30).append(facts)
    still, begun = StillHub(monkeypatch), list[Any]()
    running = still.runtime(still.spawner(gpu_use=True))
    monkeypatch.setattr(running, "run", begun.append)
    rules = UseRules(directory=tmp_path, prometheus="http://127.0.0.1:1")
    use = HubUse(JupyterHub(), running, rules)
    assert use.watch is not None
    keeping = asyncio.create_task(use.run())
    while not begun:  # noqa: ASYNC110, it tells nobody
        await asyncio.sleep(0.01)
    begun.pop().close()

    use.record.note(Fact(Happened.STARTED, now, user="ann"))
    assert ("ann", "") in use.watch._earlier
    use.record.note(Fact(Happened.ENDED, now, user="ann"))
    assert ("ann", "") not in use.watch._earlier
    keeping.cancel()
    await asyncio.wait({keeping})


async def test_an_end_that_is_noted_while_the_files_are_read_is_kept_in_them(
    tmp_path: Path, monkeypatch: Any
) -> None:
    now = time.time()
    FactFiles(tmp_path, 30).append([Fact(Happened.GRANTED, now - 60, user="ann")])
    still = StillHub(monkeypatch)
    running = still.runtime(still.spawner(gpu_use=True))
    use = HubUse(JupyterHub(), running, UseRules(directory=tmp_path))

    keeping = asyncio.create_task(use.run())
    use.record.note(Fact(Happened.ENDED, now, user="ann", reason="deleted"))
    while not use.record.facts:  # noqa: ASYNC110, it tells nobody
        await asyncio.sleep(0.01)
    keeping.cancel()
    await asyncio.wait({keeping})

    _, end = FactFiles(tmp_path, 30).read(10)
    assert (end.happened, end.reason, round(end.seconds)) == (Happened.ENDED, "deleted", 60)


async def test_a_hub_without_threads_to_read_an_earlier_record_begins_one(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(record_files, "_SECONDS", 0.01)
    still = StillHub(monkeypatch)
    running = still.runtime(still.spawner(gpu_use=True))
    use = HubUse(JupyterHub(), running, UseRules(directory=tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(hub_use, "aside", no_thread)
        keeping = asyncio.create_task(use.run())
        await asyncio.wait({keeping}, timeout=0.1)
    assert not keeping.done()
    use.record.note(Fact(Happened.GRANTED, time.time(), user="ann"))
    await until(lambda: bool(FactFiles(tmp_path, 30).read(10)))
    keeping.cancel()
    await asyncio.wait({keeping})


async def test_idle_servers_are_looked_for_also_if_a_disk_hangs(
    tmp_path: Path, monkeypatch: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Until the first look, the culler stops no server with a GPU."""
    ends = threading.Event()
    monkeypatch.setattr(hub_use, "_PATIENCE", 0.01, raising=False)
    monkeypatch.setattr(FactFiles, "read", lambda *_: ends.wait() and [])
    still, begun = StillHub(monkeypatch), list[Any]()
    running = still.runtime(still.spawner(gpu_use=True))
    monkeypatch.setattr(running, "run", begun.append)
    rules = UseRules(directory=tmp_path, prometheus="http://127.0.0.1:1")
    keeping = asyncio.create_task(HubUse(JupyterHub(), running, rules).run())

    await until(lambda: bool(begun))

    begun.pop().close()
    ends.set()
    keeping.cancel()
    await asyncio.wait({keeping})
    assert "gpu_use.directory: the earlier record can't be read: TimeoutError()" in caplog.text


async def no_thread(*_: object) -> None:
    raise RuntimeError("can't start new thread")


async def test_what_is_noted_before_the_files_are_read_is_kept_if_the_hub_ends(
    tmp_path: Path, monkeypatch: Any
) -> None:
    """Also an end: the next hub reads whether that server ever began."""
    now, files = time.time(), FactFiles(tmp_path, 30)
    files.append([Fact(Happened.GRANTED, now - 60, user="ann")])
    reads, ends = threading.Event(), threading.Event()

    def hang(*_: object) -> list[Fact]:
        reads.set()
        ends.wait()
        return []

    still = StillHub(monkeypatch)
    running = still.runtime(still.spawner(gpu_use=True))
    use = HubUse(JupyterHub(), running, UseRules(directory=tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(FactFiles, "read", hang)
        keeping = asyncio.create_task(use.run())
        assert await asyncio.to_thread(reads.wait, UNIT_PATIENCE)
    use.record.note(Fact(Happened.ENDED, now, user="ann", reason="deleted"))
    use.record.note(Fact(Happened.GRANTED, now + 1, user="ann"))
    keeping.cancel()
    await asyncio.wait({keeping})
    ends.set()

    next_hub = Record()
    next_hub.restore(files.read(10))
    assert [it.happened.value for it in next_hub.facts] == ["granted", "ended", "granted"]


async def test_what_is_told_in_turns_is_written_meanwhile(tmp_path: Path, monkeypatch: Any) -> None:
    """An administrator's handler may take its time, and the hub may be killed."""
    monkeypatch.setattr(record_files, "_SECONDS", 0.01)
    now, many, heard = time.time(), 300, list[Fact]()
    everybody = [f"user-{number}" for number in range(many)]
    FactFiles(tmp_path, 30).append([Fact(Happened.GRANTED, now - 60, it) for it in everybody])
    still = StillHub(monkeypatch)
    running = still.runtime(still.spawner(gpu_use=True))
    use = HubUse(JupyterHub(), running, UseRules(directory=tmp_path))

    def handle(fact: Fact) -> None:
        heard.append(fact)
        time.sleep(0.001)

    use.record.read_by(handle)
    for user in everybody:
        use.record.note(Fact(Happened.ENDED, now, user, reason="deleted"))
    keeping = asyncio.create_task(use.run())
    kept = FactFiles(tmp_path, 30)
    async with asyncio.timeout(30):
        while len(heard) < many == len(kept.read(1000)):  # noqa: ASYNC110, it tells nobody
            await asyncio.sleep(0)
    told = len(heard)
    keeping.cancel()
    await asyncio.wait({keeping})

    assert told < many
    assert [it.user for it in heard] == everybody
    assert len(kept.read(1000)) == 2 * many
