"""The events of pods that start: why they don't yet, and what autoscalers do for them."""

import asyncio
import logging
from collections.abc import Iterable, Iterator
from contextlib import aclosing, contextmanager, suppress

from gpuspawner.cluster.client import Client
from gpuspawner.cluster.following import Access
from gpuspawner.cluster.kinds import pod_events
from gpuspawner.cluster.list_watch import Confirmed, Lost, Page, Watcher
from gpuspawner.kube.autoscaling import Event
from gpuspawner.kube.objects import AnyObject, Undecodable, decode

log = logging.getLogger(__name__)

_REST_SECONDS = 60.0
"""How long a watch goes on without a pod that starts."""


class Heard:
    """The events of one pod, by its unique id; an older pod of its name has had others.

    Attributes:
        is_heard: Whether the API server sends the events; the hub may not be allowed to read them.
    """

    def __init__(self) -> None:
        self.is_heard = True
        self._events: dict[str, list[Event]] = {}
        self._kept: dict[str, Event] = {}

    def put(self, event: Event) -> None:
        """Keep an event, unless it was kept before: a new list has the old ones, too."""
        name, version = event.metadata.name, event.metadata.resource_version
        known = self._kept.get(name)
        if known and version and known.metadata.resource_version == version:
            return
        self._kept[name] = event
        self._events.setdefault(event.involved_object.uid, []).append(event)

    def all(self) -> Iterable[Event]:
        """Return every event that was heard, as it was heard last."""
        return tuple(self._kept.values())

    def take(self, uid: str) -> list[Event]:
        """Return the events since the last call."""
        return self._events.pop(uid, [])


class PodEvents:
    """Watches the events of a namespace while a pod in it starts, and a while longer.

    A list, a watch and their connection cost as much as a whole small start; often, the next start
    comes soon.

    Args:
        access: How the API server is read; `Access.wake` is called after every event of a pod that
            starts.
    """

    def __init__(self, access: Access) -> None:
        # One for all watches: the configuration and its certificates take milliseconds. Each
        # namespace has a watch, so the number of connections is not limited.
        self._client = Client(access.load, connections=0)
        self._access = access
        self._backoff = access.backoff.unhurried()
        self._heard: dict[str, dict[str, list[Heard]]] = {}
        self._watches: dict[str, asyncio.Task[None]] = {}
        self._is_heard: dict[str, bool] = {}
        self._ends: dict[str, asyncio.TimerHandle] = {}
        self._is_closed = False

    @contextmanager
    def of(self, namespace: str, name: str) -> Iterator[Heard]:
        """Hear the events of a pod from now on, and those that others who do have heard of it."""
        pods = self._heard.setdefault(namespace, {})
        heard, all_of_pod = Heard(), pods.setdefault(name, [])
        for event in all_of_pod[0].all() if all_of_pod else ():
            heard.put(event)
        all_of_pod.append(heard)
        self._watch_on(namespace)
        heard.is_heard = self._is_heard.get(namespace, True)
        try:
            yield heard
        finally:
            all_of_pod.remove(heard)
            if not all_of_pod and pods.get(name) is all_of_pod:
                del pods[name]
            if not pods and self._heard.get(namespace) is pods:
                self._rest(namespace)

    def _rest(self, namespace: str) -> None:
        if self._is_closed:
            self._end(namespace)
        else:
            loop = asyncio.get_running_loop()
            self._ends[namespace] = loop.call_later(_REST_SECONDS, self._end, namespace)

    def _watch_on(self, namespace: str) -> None:
        """Begin to watch a namespace, or go on."""
        if end := self._ends.pop(namespace, None):
            end.cancel()
            if not self._is_heard.get(namespace, True):  # it may wait long before it asks again
                self._is_heard.pop(namespace)
                self._watches.pop(namespace).cancel()
        if namespace not in self._watches:
            watch = asyncio.get_running_loop().create_task(self._watch(namespace))
            self._watches[namespace] = watch

    def _end(self, namespace: str) -> None:
        """Forget a namespace in which no pod starts."""
        if end := self._ends.pop(namespace, None):
            end.cancel()
        del self._heard[namespace]
        self._is_heard.pop(namespace, None)
        self._watches.pop(namespace).cancel()

    async def _watch(self, namespace: str) -> None:
        """Hear events until cancelled; an error of ours must not look like silence."""
        kind = pod_events(namespace)
        while True:
            watcher = Watcher(self._client, kind, self._backoff, self._access.contact)
            try:
                await self._follow(namespace, watcher)
            except Exception:
                log.exception("Reading events failed; starting again")
            self._tell(namespace, is_heard=False)
            await asyncio.sleep(self._backoff.last_retry)

    async def close(self) -> None:
        """End the watches that rest, and close the connections, which all of them share."""
        self._is_closed = True
        for namespace in tuple(self._ends):
            self._end(namespace)
        with suppress(Exception):
            await self._client.close()

    async def _follow(self, namespace: str, watcher: Watcher) -> None:
        async with aclosing(watcher.signals()) as signals:
            async for signal in signals:
                match signal:
                    case Lost():
                        self._tell(namespace, is_heard=False)
                    case Page(items):
                        for item in items:
                            self.hear(decode("Event", item))
                    case Confirmed(changes):
                        self._tell(namespace, is_heard=True)
                        for change in changes:
                            if change.type != "DELETED":  # it has expired: no news
                                self.hear(change.object)

    def _tell(self, namespace: str, *, is_heard: bool) -> None:
        self._is_heard[namespace] = is_heard
        for all_of_pod in self._heard.get(namespace, {}).values():
            for heard in all_of_pod:
                heard.is_heard = is_heard

    def hear(self, event: AnyObject | Undecodable) -> None:
        """Keep an event if its pod starts."""
        if not isinstance(event, Event):
            return
        pod = event.involved_object
        all_of_pod = self._heard.get(event.metadata.namespace, {}).get(pod.name)
        if all_of_pod:
            for heard in all_of_pod:
                heard.put(event)
            self._access.wake()
