"""The cache directory for what localcluster builds and downloads, each made exactly once.

Nothing goes into the work tree. An entry appears in the cache complete or not at all. If two
processes need the same entry at the same time, one makes it and the other waits.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path


def cache_directory() -> Path:
    """Return ``$GPUSPAWNER_CACHE``, or ``gpuspawner`` in the user's cache directory."""
    if named := os.environ.get("GPUSPAWNER_CACHE"):
        return Path(named).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base).absolute() / "gpuspawner"


def key(*parts: str | bytes) -> str:
    """Return a short name for an entry that depends on exactly these parts."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:16]


def made_once(name: str, make: Callable[[Path], None]) -> Path:
    """Return the cached directory of this name; make it first if it doesn't exist.

    Args:
        name: Path below the cache directory, such as ``nvml/0123``. It must change whenever
            the content would.
        make: Fills an empty directory. If it raises, nothing is kept and the next caller
            tries again.
    """
    target = cache_directory() / name
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with _only_one(target.with_name(f"{target.name}.lock")):
        if target.is_dir():
            return target
        scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        try:
            make(scratch)
            scratch.chmod(0o755)
            scratch.rename(target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return target


@contextlib.contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    """Hold the lock file; the kernel releases it even if this process is killed."""
    with lock.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting for another process to make {lock.stem}", file=sys.stderr, flush=True)
            fcntl.flock(held, fcntl.LOCK_EX)
        yield
