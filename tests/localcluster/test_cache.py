"""Cache entries are made once, and completely or not at all."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from localcluster import cache
from tests.waiting import wait_for


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUSPAWNER_CACHE", str(tmp_path))


def test_the_directory_is_named_by_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cache.cache_directory() == tmp_path

    monkeypatch.delenv("GPUSPAWNER_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.cache_directory() == tmp_path / "xdg" / "gpuspawner"

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache.cache_directory() == tmp_path / "home" / ".cache" / "gpuspawner"


def _make_and_note(directory: Path) -> None:
    with (cache.cache_directory() / "notes").open("a") as notes:
        notes.write("made\n")
    lock = (directory.parent / "1.lock").stat().st_ino
    wait_for(lambda: _waiting_for(lock) == 2)  # Both others ask for the same entry meanwhile.
    (directory / "thing").write_text("whole")


def _waiting_for(lock: int) -> int:
    """Return how many processes wait for a file's lock, by the file's inode."""
    lines = Path("/proc/locks").read_text().splitlines()
    return sum("->" in line and f":{lock} " in line for line in lines)


def _take(results: multiprocessing.Queue[str]) -> None:
    results.put((cache.made_once("things/1", _make_and_note) / "thing").read_text())


def test_processes_that_need_an_entry_at_once_make_it_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [context.Process(target=_take, args=(results,)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()

    assert [results.get() for _ in processes] == ["whole"] * 3
    assert (tmp_path / "notes").read_text() == "made\n"


def test_a_failure_leaves_nothing_and_the_next_call_tries_again(tmp_path: Path) -> None:
    def fail(directory: Path) -> None:
        (directory / "thing").write_text("half")
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        cache.made_once("things/1", fail)
    assert [path.name for path in (tmp_path / "things").iterdir()] == ["1.lock"]

    made = cache.made_once("things/1", lambda directory: (directory / "thing").touch())
    assert (made / "thing").exists()


def test_a_key_depends_on_each_part_and_on_where_it_ends() -> None:
    keys = {cache.key("a", "b"), cache.key("ab"), cache.key("b", "a"), cache.key("a", b"b")}

    assert len(keys) == 3
