"""Kubeconfig files, one user each."""

import json
from pathlib import Path


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
