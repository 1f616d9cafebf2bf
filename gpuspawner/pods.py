"""Converts a pod between KubeSpawner's models and plain objects.

gpuspawner reads pods as the API writes them. KubeSpawner and an administrator's ``modify_pod_hook``
use the classes of kubernetes_asyncio.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, cast

from kubernetes_asyncio import client

from gpuspawner.kube.objects import Manifest

_LIST = re.compile(r"list\[(.+)\]")
_DICT = re.compile(r"dict\(str, (.+)\)")

# The API server validates pods; it knows more fields than the client's classes do.
_UNCHECKED = client.Configuration()
_UNCHECKED.client_side_validation = False


class _Unconnected:
    """What ``sanitize_for_serialization`` uses of a client; a real one opens connections."""

    PRIMITIVE_TYPES = client.ApiClient.PRIMITIVE_TYPES
    sanitize_for_serialization = client.ApiClient.sanitize_for_serialization


_UNCONNECTED = _Unconnected()


def plain(pod: Any) -> dict[str, Any]:
    """Return the pod as a client would send it; *pod* may mix models and plain objects."""
    written: dict[str, Any] = client.ApiClient.sanitize_for_serialization(
        cast("client.ApiClient", _UNCONNECTED), pod
    )
    return written


def model(pod: Manifest) -> Any:
    """Return the pod as a ``V1Pod`` that `plain` turns back into exactly the same object.

    An object with a field that is newer than the client's classes stays a plain object, as do parts
    of the pod that KubeSpawner takes from the configuration.
    """
    return _model(pod, "V1Pod")


def _model(value: Any, kind: str) -> Any:
    if isinstance(value, list):
        of = _LIST.fullmatch(kind)
        return [_model(item, of[1]) for item in value] if of else value
    if not isinstance(value, dict):
        return value
    if of := _DICT.fullmatch(kind):
        return {name: _model(item, of[1]) for name, item in value.items()}
    cls = getattr(client, kind, None)
    if cls is None:
        return value
    attributes = _attributes(cls)
    if not value.keys() <= attributes.keys():
        return value
    fields = {attributes[name]: item for name, item in value.items()}
    converted = {name: _model(item, cls.openapi_types[name]) for name, item in fields.items()}
    return cls(local_vars_configuration=_UNCHECKED, **converted)


@cache
def _attributes(cls: Any) -> Mapping[str, str]:
    """Return the names of a class's attributes, by the names that the API writes."""
    return {written: name for name, written in cls.attribute_map.items()}
