"""The variables that a container takes from Secrets and ConfigMaps."""

import base64
import binascii

from localcluster.agent.api import Api, ApiError, Object
from localcluster.agent.starting import NotStartedError

_CONFIG_ERROR = "CreateContainerConfigError"
_KINDS = {"secret": ("Secret", "secrets"), "configMap": ("ConfigMap", "configmaps")}


async def with_variables(api: Api, namespace: str, container: Object) -> Object:
    """Return the container with the values of the variables that it refers to.

    makeEnvironmentVariables in pkg/kubelet/kubelet_pods.go (v1.36.2).

    Raises:
        NotStartedError: an object or a key that it needs doesn't exist.
    """
    reader = _Reader(api, namespace)
    variables = []
    for source in container.get("envFrom", []):
        variables += await _all_of(reader, source)
    for entry in container.get("env", []):
        variables += await _value_of(reader, entry)
    return {**container, "env": variables} if variables else container


async def missing(api: Api, namespace: str, volume: Object) -> str:
    """Return what a kubelet says if a volume's Secret or ConfigMap doesn't exist, or ""."""
    reader = _Reader(api, namespace)
    secret, config = volume.get("secret"), volume.get("configMap")
    try:
        if secret and not secret.get("optional"):
            await reader.read("secret", secret["secretName"])
        if config and not config.get("optional"):
            await reader.read("configMap", config["name"])
    except NotStartedError as error:
        return error.message
    return ""


class _Reader:
    """Reads the Secrets and ConfigMaps of a namespace."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api = api
        self._namespace = namespace

    async def read(self, kind: str, name: str) -> dict[str, str]:
        """Return the data of an object as text."""
        path = f"/api/v1/namespaces/{self._namespace}/{_KINDS[kind][1]}/{name}"
        try:
            found = await self._api.get(path)
        except ApiError as error:
            if error.status != 404:
                raise
            # In the kubelet's words, which aren't the API server's: the resource is singular.
            message = f'{kind.lower()} "{name}" not found'
            raise NotStartedError(_CONFIG_ERROR, message) from None
        data: dict[str, str] = found.get("data", {})
        return {key: _decoded(text) for key, text in data.items()} if kind == "secret" else data

    async def key(self, kind: str, name: str, key: str) -> str:
        """Return one value of an object."""
        data = await self.read(kind, name)
        if key not in data:
            what = f"{_KINDS[kind][0]} {self._namespace}/{name}"
            raise NotStartedError(_CONFIG_ERROR, f"couldn't find key {key} in {what}")
        return data[key]


async def _all_of(reader: _Reader, source: Object) -> list[Object]:
    prefix = source.get("prefix", "")
    for kind in _KINDS:
        if ref := source.get(f"{kind}Ref"):
            try:
                data = await reader.read(kind, ref["name"])
            except NotStartedError:
                if ref.get("optional"):
                    return []
                raise
            return [{"name": prefix + key, "value": text} for key, text in data.items()]
    return []


async def _value_of(reader: _Reader, entry: Object) -> list[Object]:
    for kind in _KINDS:
        if ref := entry.get("valueFrom", {}).get(f"{kind}KeyRef"):
            try:
                value = await reader.key(kind, ref["name"], ref["key"])
            except NotStartedError:
                if ref.get("optional"):
                    return []
                raise
            # Such a value is taken as it is: `$(NAME)` in it is no reference.
            return [{"name": entry["name"], "value": value.replace("$", "$$")}]
    return [entry]


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
