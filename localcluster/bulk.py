"""Puts many objects into a cluster at once: past the API server, straight into its etcd.

A benchmark wants 150,000 pods that run. Created one by one, each would be admitted, defaulted and
then patched to run; this takes them as they are, some thousands a second, and the API server shows
them like all others. So they have to be whole and valid: nothing is checked or defaulted.
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
    """Put objects as they are, each with ``apiVersion``, ``kind`` and a uid.

    Args:
        etcd_url: `ControlPlane.etcd_url`.
        objects: Nodes and pods.
        total: how many there will be, to say how far it is.

    Raises:
        LocalClusterError: etcd refused some.
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
    """Where the API server keeps an object (the resource prefixes of its storage factory)."""
    name = thing["metadata"]["name"]
    if thing["kind"] == "Node":
        return f"/registry/minions/{name}"
    return f"/registry/pods/{thing['metadata']['namespace']}/{name}"
