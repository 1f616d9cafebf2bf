"""Files keep facts for some days, survive a torn line, and forget a user."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import resource
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from gpuspawner.use import record_files
from gpuspawner.use.record_files import FactFiles, Writer
from tests.unit.makers.file_database import until
from tests.unit.use.facts import fact

if TYPE_CHECKING:
    from collections.abc import Iterator

DAY = 24 * 3600.0


def kept(directory: Path, days: int = 30) -> list[str]:
    return [it.user for it in FactFiles(directory, days).read(1000)]


def test_what_is_written_is_read_in_order_over_days(tmp_path: Path) -> None:
    now = time.time()
    stored = [
        fact("granted", now - DAY, "ann", accelerator="a100", gpus=1),
        fact("started", now, "bob", phases={"scheduled": 0.25}),
    ]

    FactFiles(tmp_path, 30).append(stored[::-1])

    assert FactFiles(tmp_path, 30).read(1000) == stored
    assert len(list(tmp_path.glob("*.jsonl"))) == 2


def test_a_torn_last_line_loses_only_itself(tmp_path: Path) -> None:
    writing, now = FactFiles(tmp_path, 30), time.time()
    writing.append([fact("granted", now, "ann"), fact("granted", now, "bob")])
    (file,) = tmp_path.glob("*.jsonl")
    file.write_bytes(file.read_bytes()[:-9])

    writing.append([fact("granted", now, "eve")])

    assert kept(tmp_path) == ["ann", "eve"]


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe\n",
        b"[]\n",
        b'{"happened": "hmm"}\n',
        b"\0" * 50,
        pytest.param(b'{"more": ' + b"[" * 20_000 + b"\n", id="deep"),
    ],
)
def test_lines_that_nobody_can_read_are_left_out(line: bytes, tmp_path: Path) -> None:
    writing, now = FactFiles(tmp_path, 30), time.time()
    writing.append([fact("granted", now, "ann")])
    (file,) = tmp_path.glob("*.jsonl")
    file.write_bytes(line + file.read_bytes() if line.endswith(b"\n") else file.read_bytes() + line)

    assert kept(tmp_path) == ["ann"]


_NOBODY = 65534
"""The user id that owns nothing."""


@contextmanager
def closed(directory: Path) -> Iterator[None]:
    """Keep this process out of a directory, also if it runs as root."""
    user = os.geteuid()
    directory.chmod(0)
    if user == 0:
        os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)
        directory.chmod(0o700)


@pytest.mark.each_python
def test_a_directory_that_may_not_be_read_is_not_taken_for_an_empty_one() -> None:
    with TemporaryDirectory() as made:  # unlike pytest's, it is in a folder of everybody's
        directory = Path(made)
        FactFiles(directory, 30).append([fact("granted", time.time(), "ann")])

        with closed(directory), pytest.raises(PermissionError):
            kept(directory)

        assert kept(directory) == ["ann"]
        assert kept(directory / "none") == []


def test_files_that_are_too_old_go_when_a_new_day_begins(tmp_path: Path) -> None:
    now = time.time()
    FactFiles(tmp_path, 30).append([fact("granted", now - 40 * DAY, "old")])
    FactFiles(tmp_path, 30).append([fact("granted", now, "new")])

    assert kept(tmp_path) == ["new"]
    assert len(list(tmp_path.glob("*.jsonl"))) == 1


def test_a_user_is_forgotten_in_all_files_and_nobody_else(tmp_path: Path) -> None:
    writing, now = FactFiles(tmp_path, 30), time.time()
    writing.append([fact("granted", now - DAY, "ann"), fact("granted", now, "ann")])
    writing.append([fact("refused", now, "bob", reason="ann")])

    assert writing.forget("ann") == 2

    assert kept(tmp_path) == ["bob"]


def test_a_torn_line_of_a_user_goes_with_the_others_though_nobody_can_read_it(
    tmp_path: Path,
) -> None:
    writing, now = FactFiles(tmp_path, 30), time.time()
    writing.append([fact("granted", now, "bob"), fact("granted", now, "ann")])
    (file,) = tmp_path.glob("*.jsonl")
    file.write_bytes(file.read_bytes()[:-3])
    writing.append([fact("granted", now, "ann"), fact("granted", now, "bob")])

    assert writing.forget("ann") == 1

    assert b"ann" not in file.read_bytes()
    assert kept(tmp_path) == ["bob", "bob"]


def test_what_a_newer_version_has_noted_of_others_is_not_forgotten(tmp_path: Path) -> None:
    writing, now = FactFiles(tmp_path, 30), time.time()
    writing.append([fact("granted", now, "ann")])
    (file,) = tmp_path.glob("*.jsonl")
    newer = b'{"happened":"moved","at":"today","user":"%s"}\n'
    file.write_bytes(file.read_bytes() + newer % b"bob" + newer % b"ann")

    assert writing.forget("ann") == 2

    assert file.read_bytes() == newer % b"bob"


def test_forgetting_that_is_cut_leaves_no_copy_and_can_be_repeated(tmp_path: Path) -> None:
    writing, now = FactFiles(tmp_path, 30), time.time()
    writing.append([fact("granted", now, "ann"), *(200 * [fact("granted", now, "bob")])])
    (file,) = tmp_path.glob("*.jsonl")
    with files_of_at_most(4096), pytest.raises(OSError, match="File too large"):
        writing.forget("ann")

    writing.forget("ann")

    assert sorted(it.name for it in tmp_path.iterdir()) == [file.name, "lock"]
    assert b"ann" not in file.read_bytes()
    assert kept(tmp_path).count("bob") >= 199


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Let this process write no byte beyond so many of a file."""
    before, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, hard))


def test_whoever_forgets_a_user_the_files_stay_those_of_the_hub(tmp_path: Path) -> None:
    """An administrator may be root, and the hub isn't."""
    writing, now = FactFiles(tmp_path, 30), time.time()
    writing.append([fact("granted", now, "ann"), fact("granted", now, "bob")])
    (file,) = tmp_path.glob("*.jsonl")
    if os.geteuid() == 0:
        os.chown(file, _NOBODY, _NOBODY)
    file.chmod(0o640)
    before = file.stat()

    writing.forget("ann")

    after = file.stat()
    assert (after.st_uid, after.st_gid, after.st_mode) == (
        before.st_uid, before.st_gid, before.st_mode
    )  # fmt: skip
    assert kept(tmp_path) == ["bob"]


def test_where_nothing_is_kept_forgetting_makes_no_files(tmp_path: Path) -> None:
    assert FactFiles(tmp_path, 30).forget("ann") == 0

    assert not list(tmp_path.iterdir())  # a lock of root's would shut the hub out


def test_a_file_that_can_not_be_read_costs_only_itself_and_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    writing, now = FactFiles(tmp_path, 30), time.time()
    writing.append([fact("granted", now - DAY, "ann"), fact("granted", now, "bob")])
    first, last = sorted(tmp_path.glob("*.jsonl"))
    last.unlink()
    last.mkdir()

    assert kept(tmp_path) == ["ann"]
    assert f"Is a directory: '{last}'" in caplog.text
    assert str(first) not in caplog.text


def test_the_newest_days_are_enough(tmp_path: Path) -> None:
    writing, now = FactFiles(tmp_path, 30), time.time()
    writing.append([fact("granted", now - DAY, "old"), fact("granted", now, "new")])

    assert [it.user for it in writing.read(1)] == ["new"]


def test_a_full_day_keeps_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_files, "_MOST_BYTES", 100)
    writing, now = FactFiles(tmp_path, 30), time.time()

    writing.append([fact("granted", now, "ann")])
    for user in ("bob", "eve"):
        with pytest.raises(OSError, match="is full"):  # the writer logs it once, not each second
            writing.append([fact("granted", now, user)])

    assert kept(tmp_path) == ["ann"]


def test_a_full_day_keeps_nothing_from_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_files, "_MOST_BYTES", 100)
    writing, now = FactFiles(tmp_path, 30), time.time()
    writing.append([fact("granted", now - 86_400, "ann")])

    with pytest.raises(OSError, match="is full"):
        writing.append([fact("granted", now - 86_400, "bob"), fact("granted", now, "eve")])

    assert kept(tmp_path) == ["ann", "eve"]


def test_the_oldest_files_go_before_all_together_take_more_than_their_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(record_files, "_MOST_BYTES", 100)
    monkeypatch.setattr(record_files, "_MOST_OF_ALL", 250)
    writing, now = FactFiles(tmp_path, 366), time.time()

    for ago in range(6, -1, -1):
        writing.append([fact("granted", now - ago * DAY, f"user-{ago}")])

        assert sum(it.stat().st_size for it in tmp_path.glob("*.jsonl")) <= 250

    assert kept(tmp_path, 366) == ["user-2", "user-1", "user-0"]
    assert caplog.text.count("facts-") == 4


def test_the_facts_since_a_time_are_read_from_the_files_of_these_days_only(tmp_path: Path) -> None:
    writing, now = FactFiles(tmp_path, 30), time.time()
    writing.append([fact("granted", now - ago * DAY, f"user-{ago}") for ago in (3, 2, 1, 0)])
    first = min(tmp_path.glob("*.jsonl"))
    first.unlink()
    first.mkdir()

    assert [it.user for it in writing.since(now - 2 * DAY + 1)] == ["user-1", "user-0"]
    with pytest.raises(IsADirectoryError):  # what a report can't read, it doesn't pass over
        list(writing.since(now - 3 * DAY))


def test_only_the_hub_can_read_them(tmp_path: Path) -> None:
    FactFiles(tmp_path / "use", 30).append([fact("granted", time.time())])
    FactFiles(tmp_path / "use", 30).append([fact("granted", time.time(), "bob")])

    (file,) = (tmp_path / "use").glob("*.jsonl")
    assert file.stat().st_mode & 0o077 == 0
    assert FactFiles(tmp_path / "use", 30).forget("bob") == 1
    assert file.stat().st_mode & 0o077 == 0
    assert (tmp_path / "use").stat().st_mode & 0o077 == 0


async def test_what_waits_is_written_when_the_hub_ends(tmp_path: Path) -> None:
    writer = Writer(FactFiles(tmp_path, 30))
    running = asyncio.create_task(writer.run())
    await asyncio.sleep(0)
    writer.write(fact("granted", time.time(), "ann"))

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    writer.finish()

    assert kept(tmp_path) == ["ann"]


async def test_a_disk_that_hangs_holds_up_neither_the_hub_nor_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record_files, "_LAST_SECONDS", 0.01)
    writer = Writer(FactFiles(tmp_path, 30))
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        writing = asyncio.create_task(writer.run())
        await asyncio.sleep(0)
        writer.write(fact("granted", time.time(), "ann"))

        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        writer.finish()

        assert not kept(tmp_path)


def test_a_directory_that_can_not_be_written_is_named_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    writer = Writer(FactFiles(tmp_path / "file", 30))

    with caplog.at_level(logging.WARNING, "gpuspawner"):
        writer._append([fact("granted")])
        writer._append([fact("granted")])

    assert [it.getMessage() for it in caplog.records if "gpu_use.directory" in it.getMessage()] == [
        caplog.records[0].getMessage()
    ]


@pytest.mark.parametrize("has_threads", [True, False])
async def test_facts_are_written_after_any_failure_which_is_logged(
    has_threads: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(record_files, "_SECONDS", 0.01)
    writer = Writer(FactFiles(tmp_path, 30))
    with monkeypatch.context() as patch:
        if not has_threads:
            patch.setattr(threading.Thread, "start", no_thread)
        writer.write(fact("granted", time.time(), "half a pair: \ud800"))
        running = asyncio.create_task(writer.run())
        await until(lambda: "gpu_use.directory" in caplog.text)
    writer.write(fact("granted", time.time(), "ann"))
    try:
        await until(lambda: kept(tmp_path) == ["ann"])
    finally:
        running.cancel()
        await asyncio.wait({running})


def test_a_hub_that_ends_without_threads_logs_that_facts_are_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    writer = Writer(FactFiles(tmp_path, 30))
    writer.write(fact("granted", time.time(), "ann"))
    monkeypatch.setattr(threading.Thread, "start", no_thread)

    writer.finish()

    assert "gpu_use.directory" in caplog.text


def no_thread(_: object) -> None:
    raise RuntimeError("can't start new thread")
