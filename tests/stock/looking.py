"""A hook that looks at everything in a pod, as one that is written for KubeSpawner may."""

from collections.abc import Iterator
from typing import Any

from gpuspawner.compat import pods


def look(was: Any, now: Any) -> None:
    """Check that a hook finds in a pod what KubeSpawner has made.

    Raises:
        AssertionError: What hasn't changed is another object, or something has another type.
    """
    if was is None or isinstance(was, str | int):
        return
    if pods.plain(was) == pods.plain(now):
        assert now is was
    elif isinstance(was, list | tuple):
        _look_at_items(was, now)
    else:
        assert type(now) is type(was)
        there = dict(_parts(now))
        for name, part in _parts(was):
            if name in there:
                look(part, there[name])


def _look_at_items(was: Any, now: Any) -> None:
    others = [it for it in now if not any(it is item for item in was)]
    kinds = {type(it) for it in was}
    if len(kinds) == 1:
        assert {type(it) for it in others} <= kinds
    for item in was:
        named = [it for it in others if _named(it) == _named(item) is not None]
        if len(named) == 1:
            look(item, named[0])


def _parts(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the name and the value of each part of an object, as a hook reads them."""
    if isinstance(value, dict):
        yield from value.items()
    elif hasattr(value, "attribute_map"):
        yield from ((name, getattr(value, name)) for name in value.attribute_map)


def _named(item: Any) -> Any:
    return dict(_parts(item)).get("name")
