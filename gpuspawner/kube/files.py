"""Reads objects from files that contain the output of `kubectl get -o json`."""

from pathlib import Path

import msgspec

Objects = list[dict[str, object]]


class FileError(ValueError):
    """A file that doesn't contain what `kubectl get -o json` prints."""


def read_objects(path: Path) -> Objects:
    """Read the objects of a file that contains a List or one object.

    Raises:
        FileError: the file can't be read, or contains neither.
    """
    try:
        plain: object = msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError, RecursionError) as error:
        raise FileError(f"{path}: {error}") from error
    items = plain.get("items", [plain]) if isinstance(plain, dict) else plain
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise FileError(f"{path}: expected one object or a List, as kubectl get -o json prints")
    return items
