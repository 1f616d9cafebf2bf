"""A pod on its way to the API server: KubeSpawner's models and the plain objects of the rest.

The rooms below know pods as the API writes them, with camelCase names; KubeSpawner and its
administrators' ``modify_pod_hook`` know the classes of kubernetes_asyncio.
"""

import re
from typing import Any, cast

from kubernetes_asyncio import client

from gpuspawner.kube.manifest import Manifest

_LIST = re.compile(r"list\[(.+)\]")
_DICT = re.compile(r"dict\(str, (.+)\)")

# Whether a pod is valid is for the API server to say, which knows more than the client's classes.
_UNCHECKED = client.Configuration()
_UNCHECKED.client_side_validation = False


class _Unconnected:
    """All that ``sanitize_for_serialization`` needs of a client; a real one opens connections."""

    PRIMITIVE_TYPES = client.ApiClient.PRIMITIVE_TYPES
    sanitize_for_serialization = client.ApiClient.sanitize_for_serialization


_UNCONNECTED = _Unconnected()


def plain(pod: Any) -> dict[str, Any]:
    """The pod as a client would send it: from a model, or half model, half plain."""
    written: dict[str, Any] = client.ApiClient.sanitize_for_serialization(
        cast("client.ApiClient", _UNCONNECTED), pod
    )
    return written


def model(pod: Manifest) -> Any:
    """The pod as a ``V1Pod`` that is written back to exactly the same object.

    What the client's classes do not know, a field newer than they are, stays a plain object, as it
    does where KubeSpawner takes a part of the pod from the configuration.
    """
    return _model(pod, "V1Pod")


def _model(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if of := _LIST.fullmatch(kind):
        return [_model(item, of[1]) for item in value] if isinstance(value, list) else value
    if of := _DICT.fullmatch(kind):
        if not isinstance(value, dict):
            return value
        return {name: _model(item, of[1]) for name, item in value.items()}
    cls = getattr(client, kind, None)
    if cls is None or not isinstance(value, dict):
        return value
    attributes = {written: name for name, written in cls.attribute_map.items()}
    if not value.keys() <= attributes.keys():
        return value
    fields = {attributes[name]: item for name, item in value.items()}
    converted = {name: _model(item, cls.openapi_types[name]) for name, item in fields.items()}
    return cls(local_vars_configuration=_UNCHECKED, **converted)
