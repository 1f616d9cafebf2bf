"""Writes many objects straight into a cluster's etcd, past its API server.

A benchmark needs 150,000 running pods. The API server would admit, default and then patch each one.
This writes some thousands a second, and the API server serves them like any others. Nothing checks
or defaults them, so they must be complete and valid.
"""

import itertools
import json
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Final

from localcluster.client import Object
from localcluster.etcd import Gateway, encoded

#: etcd takes up to 128 operations in a transaction, and 1.5 MB.
_AT_ONCE: Final = 100
_SAY_EVERY: Final = 5.0


def put(etcd_url: str, objects: Iterable[Object], total: int) -> None:
    """Write objects as they are, each with ``apiVersion``, ``kind`` and a uid.

    Args:
        etcd_url: `ControlPlane.etcd_url`.
        objects: Nodes and pods.
        total: how many objects there are, for the progress messages.

    Raises:
        LocalClusterError: etcd refused some of them.
    """
    etcd = Gateway(etcd_url)
    done, shown = 0, time.monotonic()
    with closing(etcd):
        for batch in _batches(iter(objects)):
            etcd.ask("kv/txn", {"success": [_put_operation(thing) for thing in batch]})
            done += len(batch)
            if time.monotonic() - shown > _SAY_EVERY:
                shown = time.monotonic()
                print(f"  {done} of {total} objects", file=sys.stderr, flush=True)


def _batches(objects: Iterator[Object]) -> Iterator[list[Object]]:
    while batch := list(itertools.islice(objects, _AT_ONCE)):
        yield batch


def _put_operation(thing: Object) -> Object:
    return {
        "requestPut": {"key": encoded(_key(thing)), "value": encoded(json.dumps(thing))},
    }


def _key(thing: Object) -> str:
    """Return the etcd key of an object (prefixes as in the API server's storage factory)."""
    name = thing["metadata"]["name"]
    if thing["kind"] == "Node":
        return f"/registry/minions/{name}"
    return f"/registry/pods/{thing['metadata']['namespace']}/{name}"
