"""The command line and the variables of a container's process. No input or output."""

import os
import re
from collections.abc import Mapping
from urllib.parse import urlsplit, urlunsplit

from localcluster.agent.api import Object

_REFERENCE = re.compile(r"\$(\$|\(([-._a-zA-Z][-._a-zA-Z0-9]*)\))")
_ANY_ADDRESS = ("0.0.0.0", "::", "")  # noqa: S104  (looked for, to be replaced)
_SERVICE_URL = "JUPYTERHUB_SERVICE_URL"


def command_line(container: Object, variables: Mapping[str, str], *, is_root: bool) -> list[str]:
    """Return the container's command and arguments; empty if only its image knows them.

    Jupyter refuses to run as root without --allow-root; in an image it wouldn't be root.
    """
    words = [*container.get("command", []), *container.get("args", [])]
    line = [expand(word, variables) for word in words]
    is_jupyter = any(os.path.basename(word).startswith("jupyter") for word in line[:1])  # noqa: PTH119
    if is_root and is_jupyter and "--allow-root" not in line:
        line.append("--allow-root")
    return line


def container_variables(pod: Object, container: Object, ip: str) -> dict[str, str]:
    """Return the variables that the container's ``env`` sets.

    A value may refer to variables before it. Besides plain values, only references to the
    pod's fields are supported.
    """
    variables: dict[str, str] = {}
    for entry in container.get("env", []):
        field = entry.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
        if field:
            variables[entry["name"]] = _field(pod, field, ip)
        else:
            # The API server omits an empty value.
            variables[entry["name"]] = expand(entry.get("value", ""), variables)
    if url := variables.get(_SERVICE_URL):
        variables[_SERVICE_URL] = at_address(url, ip)
    return variables


def at_address(url: str, ip: str) -> str:
    """Return the URL with the pod's address instead of "any": pods share the host's network."""
    parts = urlsplit(url)
    if parts.hostname not in _ANY_ADDRESS:
        return url
    port = f":{parts.port}" if parts.port else ""
    return urlunsplit(parts._replace(netloc=f"{ip}{port}"))


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace ``$(NAME)`` as Kubernetes does: unknown names stay, ``$$`` is ``$``."""

    def replacement(match: re.Match[str]) -> str:
        if match[1] == "$":
            return "$"
        return variables.get(match[2], match[0])

    return _REFERENCE.sub(replacement, text)


def _field(pod: Object, path: str, ip: str) -> str:
    fields = {
        "metadata.name": pod["metadata"]["name"],
        "metadata.namespace": pod["metadata"]["namespace"],
        "metadata.uid": pod["metadata"]["uid"],
        "spec.nodeName": pod["spec"]["nodeName"],
        "spec.serviceAccountName": pod["spec"].get("serviceAccountName", ""),
        "status.podIP": ip,
        "status.hostIP": "127.0.0.1",
    }
    return str(fields.get(path, ""))
