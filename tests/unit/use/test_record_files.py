"""Files keep facts for some days, survive a torn line, and forget a user."""

import asyncio
import fcntl
import os
import resource
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from gpuspawner.use import record_files
from gpuspawner.use.record_files import FactFiles, Writer
from tests.unit.makers.file_database import until
from tests.unit.use.facts import fact

DAY = 24 * 3600.0


@pytest.fixture
def writing(tmp_path):
    return FactFiles(tmp_path, 30)


def granted(*users, ago=0.0):
    return [fact("granted", time.time() - ago, it) for it in users]


def kept(directory, days=30):
    return [it.user for it in FactFiles(directory, days).read(1000)]


def files(directory):
    return sorted(directory.glob("*.jsonl"))


def test_what_is_written_is_read_in_order_over_days(writing, tmp_path):
    now = time.time()
    stored = [
        fact("granted", now - DAY, "ann", accelerator="a100", gpus=1),
        fact("started", now, "bob", phases={"scheduled": 0.25}),
    ]

    writing.append(stored[::-1])

    assert FactFiles(tmp_path, 30).read(1000) == stored
    assert len(files(tmp_path)) == 2


def test_a_torn_last_line_loses_only_itself(writing, tmp_path):
    writing.append(granted("ann", "bob"))
    (file,) = files(tmp_path)
    file.write_bytes(file.read_bytes()[:-9])

    writing.append(granted("eve"))

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
def test_lines_that_nobody_can_read_are_left_out(line, writing, tmp_path):
    writing.append(granted("ann"))
    (file,) = files(tmp_path)
    file.write_bytes(line + file.read_bytes() if line.endswith(b"\n") else file.read_bytes() + line)

    assert kept(tmp_path) == ["ann"]


_NOBODY = 65534
"""The user id that owns nothing."""


@contextmanager
def closed(directory):
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
def test_a_directory_that_may_not_be_read_is_not_taken_for_an_empty_one():
    with TemporaryDirectory() as made:  # unlike pytest's, it is in a folder of everybody's
        directory = Path(made)
        FactFiles(directory, 30).append(granted("ann"))

        with closed(directory), pytest.raises(PermissionError):
            kept(directory)

        assert kept(directory) == ["ann"]
        assert kept(directory / "none") == []


def test_files_that_are_too_old_go_when_a_new_day_begins(writing, tmp_path):
    writing.append(granted("old", ago=40 * DAY))
    writing.append(granted("new"))

    assert kept(tmp_path) == ["new"]
    assert len(files(tmp_path)) == 1


def test_a_user_is_forgotten_in_all_files_and_nobody_else(writing, tmp_path):
    writing.append(granted("ann", ago=DAY) + granted("ann"))
    writing.append([fact("refused", time.time(), "bob", reason="ann")])

    assert writing.forget("ann") == 2

    assert kept(tmp_path) == ["bob"]


def test_a_torn_line_of_a_user_goes_with_the_others_though_nobody_can_read_it(writing, tmp_path):
    writing.append(granted("bob", "ann"))
    (file,) = files(tmp_path)
    file.write_bytes(file.read_bytes()[:-3])
    writing.append(granted("ann", "bob"))

    assert writing.forget("ann") == 1

    assert b"ann" not in file.read_bytes()
    assert kept(tmp_path) == ["bob", "bob"]


def test_what_a_newer_version_has_noted_of_others_is_not_forgotten(writing, tmp_path):
    writing.append(granted("ann"))
    (file,) = files(tmp_path)
    newer = b'{"happened":"moved","at":"today","user":"%s"}\n'
    file.write_bytes(file.read_bytes() + newer % b"bob" + newer % b"ann")

    assert writing.forget("ann") == 2

    assert file.read_bytes() == newer % b"bob"


def test_forgetting_that_is_cut_leaves_no_copy_and_can_be_repeated(writing, tmp_path):
    writing.append(granted("ann", *200 * ["bob"]))
    (file,) = files(tmp_path)
    with files_of_at_most(4096), pytest.raises(OSError, match="File too large"):
        writing.forget("ann")

    writing.forget("ann")

    assert sorted(it.name for it in tmp_path.iterdir()) == [file.name, "lock"]
    assert b"ann" not in file.read_bytes()
    assert kept(tmp_path).count("bob") >= 199


@contextmanager
def files_of_at_most(size):
    """Let this process write no byte beyond so many of a file."""
    before, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, hard))


def whose(file):
    its = file.stat()
    return its.st_uid, its.st_gid, its.st_mode


def test_whoever_forgets_a_user_the_files_stay_those_of_the_hub(writing, tmp_path):
    """An administrator may be root, and the hub isn't."""
    writing.append(granted("ann", "bob"))
    (file,) = files(tmp_path)
    if os.geteuid() == 0:
        os.chown(file, _NOBODY, _NOBODY)
    file.chmod(0o640)
    before = whose(file)

    writing.forget("ann")

    assert whose(file) == before
    assert kept(tmp_path) == ["bob"]


def test_where_nothing_is_kept_forgetting_makes_no_files(writing, tmp_path):
    assert writing.forget("ann") == 0

    assert not list(tmp_path.iterdir())  # a lock of root's would shut the hub out


def test_a_file_that_can_not_be_read_costs_only_itself_and_is_named(writing, tmp_path, caplog):
    writing.append(granted("ann", ago=DAY) + granted("bob"))
    first, last = files(tmp_path)
    last.unlink()
    last.mkdir()

    assert kept(tmp_path) == ["ann"]
    assert f"Is a directory: '{last}'" in caplog.text
    assert str(first) not in caplog.text


def test_the_newest_days_are_enough(writing):
    writing.append(granted("old", ago=DAY) + granted("new"))

    assert [it.user for it in writing.read(1)] == ["new"]


def test_a_full_day_keeps_no_more_and_nothing_from_the_next(writing, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(record_files, "_MOST_BYTES", 100)
    writing.append(granted("ann", ago=DAY))

    for facts in granted("bob", ago=DAY) + granted("eve"), granted("tom", ago=DAY):
        writing.append(facts)

    assert kept(tmp_path) == ["ann", "eve"]
    assert caplog.text.count("has no room") == 1


def test_facts_that_a_script_repeats_leave_room_for_who_keeps_a_server(
    writing, tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr(record_files, "_MOST_BYTES", 4000)
    now, seen = time.time(), []
    for happened in ("refused", "granted", "kept"):
        for _ in range(70):
            writing.append([fact(happened, now, reason="busy")])
        (file,) = files(tmp_path)
        seen.append(round(file.stat().st_size / 4000, 1))

    assert seen == [0.5, 0.9, 1.0]
    assert [caplog.text.count(it) for it in ("'refused'", "'granted'", "'kept'")] == [1, 1, 1]


def test_refusals_of_a_day_keep_nothing_of_earlier_days_from_being_read(writing):
    now = time.time()
    writing.append([fact("kept", now - 2 * DAY), fact("refused", now - 2 * DAY)])
    writing.append([fact("refused", now - DAY), *(fact("refused", now) for _ in range(9))])

    found = [it.happened.value for it in writing.read(5)]

    assert found == ["kept", *9 * ["refused"]]


def test_the_oldest_files_go_before_all_take_more_than_their_room(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(record_files, "_MOST_BYTES", 100)
    monkeypatch.setattr(record_files, "_MOST_OF_ALL", 250)

    for ago in range(6, -1, -1):
        FactFiles(tmp_path, 366).append(granted(f"user-{ago}", ago=ago * DAY))

        assert sum(it.stat().st_size for it in files(tmp_path)) <= 250

    assert kept(tmp_path, 366) == ["user-2", "user-1", "user-0"]
    assert caplog.text.count("facts-") == 4


def test_the_facts_since_a_time_are_read_from_the_files_of_these_days_only(writing, tmp_path):
    now = time.time()
    writing.append([fact("granted", now - ago * DAY, f"user-{ago}") for ago in (3, 2, 1, 0)])
    first = files(tmp_path)[0]
    first.unlink()
    first.mkdir()

    assert [it.user for it in writing.since(now - 2 * DAY + 1)] == ["user-1", "user-0"]
    with pytest.raises(IsADirectoryError):  # what a report can't read, it doesn't pass over
        list(writing.since(now - 3 * DAY))


def test_only_the_hub_can_read_them(tmp_path):
    writing = FactFiles(tmp_path / "use", 30)
    writing.append(granted("ann", "bob"))

    (file,) = files(tmp_path / "use")
    assert file.stat().st_mode & 0o077 == 0
    assert writing.forget("bob") == 1
    assert file.stat().st_mode & 0o077 == 0
    assert (tmp_path / "use").stat().st_mode & 0o077 == 0


async def test_what_waits_is_written_when_the_hub_ends(writing, tmp_path):
    writer = Writer(writing)
    running = asyncio.create_task(writer.run())
    await asyncio.sleep(0)
    writer.write(*granted("ann"))

    running.cancel()
    await asyncio.wait({running})
    writer.finish()

    assert kept(tmp_path) == ["ann"]


async def test_a_disk_that_hangs_holds_up_neither_the_hub_nor_its_end(
    writing, tmp_path, monkeypatch
):
    monkeypatch.setattr(record_files, "_LAST_SECONDS", 0.01)
    writer = Writer(writing)
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        running = asyncio.create_task(writer.run())
        await asyncio.sleep(0)
        writer.write(*granted("ann"))

        running.cancel()
        await asyncio.wait({running})
        writer.finish()

        assert not kept(tmp_path)


@pytest.mark.parametrize("has_threads", [True, False])
async def test_facts_are_written_after_any_failures_of_which_the_first_is_logged(
    has_threads, writing, tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr(record_files, "_SECONDS", 0.01)
    writer = Writer(writing)
    with monkeypatch.context() as patch:
        if not has_threads:
            patch.setattr(threading.Thread, "start", no_thread)
        writer.write(*granted("half a pair: \ud800"))
        running = asyncio.create_task(writer.run())
        await until(lambda: "gpu_use.directory" in caplog.text)
        writer.write(*granted("the other half: \udc00"))
        await until(lambda: not writer._waiting)
    writer.write(*granted("ann"))
    try:
        await until(lambda: kept(tmp_path) == ["ann"])
    finally:
        running.cancel()
        await asyncio.wait({running})

    assert caplog.text.count("gpu_use.directory") == 1


def test_a_hub_that_ends_without_threads_logs_that_facts_are_not_written(
    writing, monkeypatch, caplog
):
    writer = Writer(writing)
    writer.write(*granted("ann"))
    monkeypatch.setattr(threading.Thread, "start", no_thread)

    writer.finish()

    assert "gpu_use.directory" in caplog.text


def no_thread(_):
    raise RuntimeError("can't start new thread")
