"""Kubeconfig files, one user each."""

import json
from dataclasses import dataclass
from pathlib import Path

import yaml


@dataclass(frozen=True, slots=True)
class Access:
    """An API server, and the token of a user of it."""

    url: str
    ca: Path
    token: str


def read(path: Path) -> Access:
    """Read a kubeconfig of one user with a token."""
    config = yaml.safe_load(path.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    return Access(cluster["server"], Path(cluster["certificate-authority"]), user["token"])


def write(path: Path, *, url: str, ca: Path, token: str, namespace: str = "default") -> Path:
    """Write a kubeconfig that only this user may read, and return its path."""
    # JSON is YAML too.
    text = json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": "localcluster",
                    "cluster": {"server": url, "certificate-authority": str(ca.absolute())},
                }
            ],
            "users": [{"name": "user", "user": {"token": token}}],
            "contexts": [
                {
                    "name": "localcluster",
                    "context": {
                        "cluster": "localcluster",
                        "user": "user",
                        "namespace": namespace,
                    },
                }
            ],
            "current-context": "localcluster",
        },
        indent=2,
    )
    scratch = path.with_name(f".{path.name}.new")
    scratch.touch(mode=0o600)
    scratch.write_text(text + "\n")
    scratch.rename(path)
    return path
