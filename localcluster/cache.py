"""The cache directory, and how something is made in it exactly once.

Nothing is built or downloaded into the work tree. What is made appears in the
cache whole or not at all, and two processes that want it at once make it once.
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
    """Return a short name for what depends on exactly these parts."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:16]


def made_once(name: str, make: Callable[[Path], None]) -> Path:
    """Return the cached directory of this name, made first if it is not there.

    Args:
        name: Path below the cache directory, such as ``nvml/0123``. What it holds
            must depend on nothing that the name does not tell.
        make: Fills the empty directory it is given. When it raises, nothing is
            kept and the next caller tries again.
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
    """Hold the lock file; the kernel frees it however its holder ends."""
    with lock.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting for another process to make {lock.stem}", file=sys.stderr, flush=True)
            fcntl.flock(held, fcntl.LOCK_EX)
        yield
