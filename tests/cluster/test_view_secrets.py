"""The hub doesn't keep secrets from pods in its memory."""

from __future__ import annotations

import gc
import secrets

import msgspec

from localcluster import LocalCluster
from tests.cluster.test_view import pod
from tests.cluster.views import aside, until, viewing
from tests.waiting import PATIENCE


def carrying(name: str, secret: str) -> dict[str, object]:
    """Return a pod with the secret in every field that the view doesn't need."""
    plain = pod(name)
    [container] = plain["spec"]["containers"]
    container["env"] = [{"name": "TOKEN", "value": secret}]
    container["args"] = ["--token", secret]
    plain["metadata"]["annotations"] = {"example.org/applied": f'{{"TOKEN":"{secret}"}}'}
    return plain


def holders(first: str, last: str) -> list[str]:
    """Return the types of all live objects that contain both halves of a secret in sequence.

    It follows all references, because Python's garbage collector tracks neither strings nor our
    structs.
    """
    gc.collect()
    found: list[str] = []
    seen: set[int] = set()
    waiting: list[object] = gc.get_objects()
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if (first + last).encode() in _bytes(thing):
            found.append(f"{type(thing).__name__} of {len(_bytes(thing))} bytes")
        waiting.extend(_referents(thing))
    return found


def _referents(thing: object) -> list[object]:
    if isinstance(thing, msgspec.Struct):
        return [getattr(thing, name) for name in thing.__struct_fields__]
    return gc.get_referents(thing)


def _bytes(thing: object) -> bytes:
    match thing:
        case str():
            return thing.encode(errors="replace")
        case bytes() | bytearray() | memoryview() | msgspec.Raw():
            return bytes(thing)
    return b""


async def test_neither_lists_nor_events_leave_secrets_in_memory(
    cluster: LocalCluster, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"
    # In two halves, or the test would find its own secret.
    first, last = secrets.token_hex(8), secrets.token_hex(8)

    def create(name: str) -> None:
        cluster.api.create(path, carrying(name, first + last))

    def shows(name: str) -> bool:
        return f"{namespace}/{name}" in view.state.unbound_pods

    await aside(lambda: create("listed"))
    async with viewing(cluster.kubeconfig) as view:
        assert await view.first_list(PATIENCE)
        assert shows("listed")
        assert holders(first, last) == []

        await aside(lambda: create("watched"))
        await until(view, lambda: shows("watched"))
        # The view may still be reading the rest of what arrived with it. What it holds until the
        # next event stays for about a minute: then comes a bookmark.
        for _ in range(20):
            if not (held := holders(first, last)):
                break
            await view.changed(0.2)
        assert held == []
