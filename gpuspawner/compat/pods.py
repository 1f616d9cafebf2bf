"""Converts a pod from KubeSpawner's objects to plain ones, and writes changes back into them.

gpuspawner reads pods as the API writes them. KubeSpawner and an administrator's ``modify_pod_hook``
use the classes of kubernetes_asyncio.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cache
from typing import Any, cast

from kubernetes_asyncio import client

from gpuspawner.kube.objects import Manifest

_LIST = re.compile(r"list\[(.+)\]")

# The API server validates pods; it knows more fields than the client's classes do.
_UNCHECKED = client.Configuration()
_UNCHECKED.client_side_validation = False


class _Unconnected:
    """What ``sanitize_for_serialization`` uses of a client; a real one opens connections."""

    PRIMITIVE_TYPES = client.ApiClient.PRIMITIVE_TYPES
    sanitize_for_serialization = client.ApiClient.sanitize_for_serialization


_UNCONNECTED = _Unconnected()
_SENT_AS_IT_IS = frozenset({str, int, float, bool, type(None)})


def is_model(part: object) -> bool:
    """Whether it is one of the client's objects, which KubeSpawner takes for dictionaries."""
    return hasattr(type(part), "attribute_map")


def plain(part: Any) -> Any:
    """Return a pod or a part of it as a client would send it; it may mix models and plain objects.

    Each start does this several times, and the client's own way takes twice as long.
    """
    kind = type(part)
    if kind in _SENT_AS_IT_IS:
        return part
    if kind is dict:
        return {name: plain(it) for name, it in part.items()}
    if kind is list:
        return [plain(it) for it in part]
    if is_model(part):
        fields = (
            (written, getattr(part, name)) for written, name in _attributes(part.__class__).items()
        )
        return {written: plain(it) for written, it in fields if it is not None}
    return client.ApiClient.sanitize_for_serialization(cast("client.ApiClient", _UNCONNECTED), part)


def changed(pod: Any, before: Manifest, to: Manifest) -> Any:
    """Return a pod that is sent as *to* is, for hooks and classes that are written for KubeSpawner.

    *before* is how the pod would have been sent, as `plain` returns it.

    Whatever doesn't change is the very object that it was; its type stays in any case. What changes
    is a copy, because a pod may share it with the configuration, and may be sent again. What is new
    has the type that KubeSpawner gives it.
    """
    return _changed(pod, before, to, "V1Pod")


def _changed(was: Any, before: Any, to: Any, kind: str) -> Any:
    """Return a part of a pod as *to* says; *before* is how it would have been sent."""
    if before == to:
        return was
    if isinstance(before, dict) and isinstance(to, dict):
        if not hasattr(was, "attribute_map"):
            return {name: _changed(was.get(name), before.get(name), to[name], "") for name in to}
        if to.keys() <= (names := _attributes(was.__class__)).keys():
            copied = copy(was)
            for written in (it for it in before | to if before.get(it) != to.get(it)):
                name = names[written]
                parts = getattr(was, name), before.get(written), to.get(written)
                setattr(copied, name, _changed(*parts, was.openapi_types[name]))
            return copied
    if isinstance(before, list | tuple) and isinstance(to, list):
        return _changed_list(was, before, to, kind)
    return _new(to, kind)


def _changed_list(was: Any, before: Sequence[Any], to: list[Any], kind: str) -> list[Any]:
    of = _LIST.fullmatch(kind)
    item_kind = type(was[0]).__name__ if was else of[1] if of else ""
    left = list(zip(was, before, strict=True))

    def item(to: Any) -> Any:
        """Change what is the same already, or else what has its name."""
        alike = [n for n, (_, it) in enumerate(left) if it == to] or [
            n for n, (_, it) in enumerate(left) if _name(it) == _name(to) is not None
        ]
        return _changed(*left.pop(alike[0]), to, item_kind) if alike else _item(to, item_kind)

    return list(map(item, to))


def _name(item: Any) -> Any:
    return item.get("name") if isinstance(item, dict) else None


def _new(value: Any, kind: str) -> Any:
    """Return a new part as KubeSpawner makes it: a model, of models down to the items of a list.

    An object with a field that is newer than the client's classes is plain.
    """
    if isinstance(value, list) and (of := _LIST.fullmatch(kind)):
        return [_item(it, of[1]) for it in value]
    return _model(value, kind, _new)


def _item(value: Any, kind: str) -> Any:
    """Return a new item of a list: a model whose own parts are plain."""
    return _model(value, kind, lambda part, _: part)


def _model(value: Any, kind: str, part: Callable[[Any, str], Any]) -> Any:
    cls = getattr(client, kind, None)
    if cls is None or not isinstance(value, dict):
        return value
    names = _attributes(cls)
    if not value.keys() <= names.keys():
        return value
    fields = {names[it]: part(of, cls.openapi_types[names[it]]) for it, of in value.items()}
    return cls(local_vars_configuration=_UNCHECKED, **fields)


@cache
def _attributes(cls: Any) -> Mapping[str, str]:
    """Return the names of a class's attributes, by the names that the API writes."""
    return {written: name for name, written in cls.attribute_map.items()}
