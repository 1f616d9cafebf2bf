"""Dry runs of a pod's creation, which run all of admission and create nothing, and their limits.

Starts have their own slots; pages and open forms share slots and answers. `changes` compares the
pod before and after a dry run.
"""

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from fractions import Fraction
from functools import partial
from typing import Protocol
from urllib.parse import quote
from weakref import WeakValueDictionary

import msgspec

from gpuspawner.cluster.client import Client, RequestError
from gpuspawner.compat.kubespawner import NO_RIGHT
from gpuspawner.kube.objects import Manifest, mapping, mappings
from gpuspawner.kube.quantity import QuantityError, parse_quantity
from gpuspawner.kube.quoting import one_line
from gpuspawner.preflight.rejection import Missing, Of, Rejection, WebhookFailed, message, read
from gpuspawner.preflight.token_bucket import Clock, TokenBucket

log = logging.getLogger(__name__)

_MOST_SAID = 100

# DefaultTolerationSeconds adds these to every pod; they let it stay on a node, not be placed there.
_OF_EVERY_POD = {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}
# Gates, because Kueue puts pods into its default queue, if their namespace has one.
_AS_WRITTEN = (
    "nodeSelector", "affinity", "overhead", "priorityClassName", "runtimeClassName",
    "resourceClaims", "schedulingGates",
)  # fmt: skip

Answer = Manifest | Rejection | None
"""The pod as admission leaves it, its rejection, or None if neither is known."""


class Admission(Protocol):
    """Runs a pod through the API server's admission."""

    async def admit(self, namespace: str, pod: Manifest) -> Answer:
        """Return the pod as admission leaves it, or why admission rejects it.

        `pod` has no spec if it can't be made yet.

        Raises:
            TooManyDryRunsError: No dry run was possible in time, so nothing is known.
        """


class DryRun:
    """Asks the API server how admission changes pods. One for the whole hub.

    Admission fills in fields that the scheduler uses: requests from a LimitRange, the tolerations,
    node selector and overhead of a RuntimeClass, a priority, and anything that a webhook adds. The
    dry run uses a generated name, since an old pod of the same name may still exist.

    Args:
        client: Sends the requests; not KubeSpawner's, whose connections are for real pods.
        seconds: How long one dry run may take.
    """

    def __init__(self, client: Client, seconds: float) -> None:
        self._client = client
        self._seconds = seconds
        self.sent = 0
        self._said: set[str] = set()

    async def admit(self, namespace: str, pod: Manifest) -> Answer:
        """As `Admission.admit`; None if the dry run fails. The log gives each reason once.

        The API server doesn't answer, say, or a webhook doesn't support dry runs.
        """
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods"
        self.sent += 1
        try:
            async with asyncio.timeout(self._seconds):
                status, answer = await self._client.post(path, {"dryRun": "All"}, _unnamed(pod))
            body = json.loads(answer)
        except (RequestError, TimeoutError, ValueError) as error:
            why = f"{type(error).__name__} {error}"
            self._skip(why, kind=why)
            return None
        if isinstance(body, dict) and body.get("kind") == "Pod":
            return body
        rejection = read(status, body, Of.POD)
        if rejection is None or _may_pass(rejection):
            has_none = rejection is not None and isinstance(rejection.cause, Missing)
            why = message(body) or f"HTTP status {status}"
            # Each user's own namespace has another name.
            self._skip(why, kind="no namespace" if has_none else why)
            return None
        return rejection

    def _skip(self, why: str, kind: str) -> None:
        """Log the first failure of each kind."""
        if kind in self._said or len(self._said) >= _MOST_SAID:
            return
        self._said.add(kind)
        log.warning(
            "A dry run failed, so the hub checks pods for room as it sends them, without what "
            "admission adds to them: %s",
            one_line(why),
        )


def _unnamed(pod: Manifest) -> Manifest:
    metadata = pod.get("metadata")
    if not isinstance(metadata, Mapping) or not isinstance(metadata.get("name"), str):
        return pod
    rest = {name: value for name, value in metadata.items() if name != "name"}
    return {**pod, "metadata": {**rest, "generateName": f"{metadata['name']}-"}}


def _may_pass(rejection: Rejection) -> bool:
    """Whether the cause may be gone by the time the pod is created."""
    match rejection.cause:
        # KubeSpawner may create a user's own namespace when the server starts.
        case Missing("Namespace") | WebhookFailed():
            return True
        case _:  # an API server that has just started knows no roles
            return NO_RIGHT in rejection.text


def changes(sent: object, admitted: object) -> bool:
    """Whether two pods, as the API writes them, differ in a field that the scheduler uses."""
    try:
        return _deciding(sent) != _deciding(admitted)
    except QuantityError:
        return True


def added_tolerations(sent: object, admitted: object) -> tuple[Manifest, ...]:
    """Return the tolerations that admission has added to a pod; not those that every pod gets."""
    had = _tolerations(sent)
    return tuple(dict(its) for its in _tolerations(admitted) if its not in had)


def _tolerations(pod: object) -> list[Mapping[str, object]]:
    tolerations = mapping(mapping(pod).get("spec")).get("tolerations")
    return [its for its in mappings(tolerations) if not _is_of_every_pod(its)]


def _deciding(pod: object) -> tuple[object, ...]:
    spec = mapping(mapping(pod).get("spec"))
    return (
        [spec.get(name) or None for name in _AS_WRITTEN],
        spec.get("schedulerName") or "default-scheduler",
        spec.get("topologySpreadConstraints") or [],
        _tolerations(pod),
        [_requests(container) for container in mappings(spec.get("initContainers"))],
        [_requests(container) for container in mappings(spec.get("containers"))],
    )


def _is_of_every_pod(toleration: Mapping[str, object]) -> bool:
    return toleration.get("effect") == "NoExecute" and toleration.get("key") in _OF_EVERY_POD


def _requests(container: Mapping[str, object]) -> dict[str, Fraction]:
    """Return what the container requests; a limit without a request counts as one."""
    resources = mapping(container.get("resources"))
    stated = {**mapping(resources.get("limits")), **mapping(resources.get("requests"))}
    return {str(name): parse_quantity(str(quantity)) for name, quantity in stated.items()}


# With these, a class that starts together gets slots in time even if each webhook takes 0.1 s; a
# refusal asks about three alternatives at the same time.
_STARTS, _STARTS_OF_ONE = 24, 3
_PREVIEWS, _PREVIEWS_OF_ONE = 4, 1
CONNECTIONS = _STARTS + _PREVIEWS

# In seconds. A hundred starts get their turns in ten seconds, two each; a page must not wait long.
_PATIENCE_OF_STARTS = 10.0
_PATIENCE_OF_PREVIEWS = 2.0

# Seconds. Admission's answer changes when an administrator changes a rule or a quota is used up.
_FRESH = 10.0
_USABLE = 60.0

# For all open forms together: each asks every 10 s, and needs a dry run of its own once in _USABLE.
_A_SECOND, _SAVED_UP = 4.0, 8


class TooManyDryRunsError(Exception):
    """A dry run got no turn in time. It was not made, so nothing is known."""


class Slots:
    """Slots that are held for a while: first come, first served.

    Args:
        most: How many can be held at the same time.
        of_one: How many of them one user can hold.
        seconds: How long to wait for one.
    """

    def __init__(self, most: int, of_one: int, seconds: float) -> None:
        self._all = asyncio.Semaphore(most)
        self._of_one = of_one
        self._seconds = seconds
        self._persons: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def slot(self, person: str) -> AsyncIterator[None]:
        """Hold a slot.

        Raises:
            TooManyDryRunsError: No slot became free in time.
        """
        theirs = self._persons.setdefault(person, asyncio.Semaphore(self._of_one))
        async with AsyncExitStack() as held:
            try:
                async with asyncio.timeout(self._seconds):
                    await held.enter_async_context(theirs)
                    await held.enter_async_context(self._all)
            except TimeoutError:
                raise TooManyDryRunsError from None
            yield


class Budget:
    """A rate limit that keeps half of its saved-up turns for users who had none lately.

    So every user gets a turn in that time, and the others share the rest.

    Args:
        a_second: How many turns it gains a second.
        most: How many turns it can save up.
        lately: Seconds in which a user who had a turn can't use that half.
        clock: Returns the time in seconds.
    """

    def __init__(
        self, a_second: float, most: int, lately: float, clock: Clock = time.monotonic
    ) -> None:
        self._clock = clock
        self._bucket = TokenBucket(a_second, most, clock)
        self._reserved = most / 2
        self._lately = lately
        self._had: dict[str, float] = {}

    def take(self, person: str) -> bool:
        """Take a turn for this user if there is one; return whether it was taken."""
        now = self._clock()
        self._had = {name: at for name, at in self._had.items() if now - at < self._lately}
        if not self._bucket.take(leaving=self._reserved if person in self._had else 0):
            return False
        self._had.setdefault(person, now)
        return True


class _Known(msgspec.Struct, frozen=True):
    answer: Answer
    at: float


class DryRuns:
    """Dry runs for a whole hub.

    A start always makes its own dry run. A page or a form may get an answer that is up to a minute
    old, and those that ask about the same pod, to the last label, in the same namespace share it.

    `patience` are the seconds that a page or a form waits for its turn.
    """

    def __init__(
        self,
        dry_run: DryRun,
        patience: float = _PATIENCE_OF_PREVIEWS,
        clock: Clock = time.monotonic,
    ) -> None:
        self._dry_run = dry_run
        self._clock = clock
        self._starts = Slots(_STARTS, _STARTS_OF_ONE, _PATIENCE_OF_STARTS)
        self._previews = Slots(_PREVIEWS, _PREVIEWS_OF_ONE, patience)
        self._budget = Budget(_A_SECOND, _SAVED_UP, _USABLE, clock)
        self._known: dict[bytes, _Known] = {}
        self._asked: dict[bytes, asyncio.Task[Answer]] = {}

    @property
    def sent(self) -> int:
        """How many the API server has been asked for."""
        return self._dry_run.sent

    def for_start(self, person: str) -> Admission:
        """Dry runs for a server that this user starts."""
        return _Turn(partial(self._ask, self._starts, person))

    def for_page(self, person: str) -> Admission:
        """Dry runs for a page that the hub renders for this user."""
        return _Turn(partial(self._shared, person, lambda: True))

    def for_form(self, person: str) -> Admission:
        """Dry runs for a form that this user keeps open and that asks again and again."""
        return _Turn(partial(self._shared, person, lambda: self._budget.take(person)))

    async def _shared(
        self, person: str, may_ask: Callable[[], bool], namespace: str, pod: Manifest
    ) -> Answer:
        key, now = _key(namespace, pod), self._clock()
        known = self._known.get(key)
        if known is not None and now - known.at < _FRESH:
            return known.answer
        if key not in self._asked:
            if not may_ask():
                if known is not None and now - known.at < _USABLE:
                    return known.answer
                raise TooManyDryRunsError
            self._begin(key, self._ask(self._previews, person, namespace, pod))
        # The request that asked first may be cancelled; others still wait for the answer.
        return await asyncio.shield(self._asked[key])

    def _begin(self, key: bytes, asking: Awaitable[Answer]) -> None:
        task = self._asked[key] = asyncio.ensure_future(asking)

        def end(_: object) -> None:
            del self._asked[key]
            if not task.cancelled() and task.exception() is None:
                self._keep(key, task.result())

        task.add_done_callback(end)

    async def _ask(self, slots: Slots, person: str, namespace: str, pod: Manifest) -> Answer:
        async with slots.slot(person):
            return await self._dry_run.admit(namespace, pod)

    def _keep(self, key: bytes, answer: Answer) -> None:
        now = self._clock()
        self._known = {k: known for k, known in self._known.items() if now - known.at < _USABLE}
        self._known[key] = _Known(answer, now)


class _Turn(msgspec.Struct, frozen=True):
    """The `Admission` of one user for one purpose."""

    ask: Callable[[str, Manifest], Awaitable[Answer]]

    async def admit(self, namespace: str, pod: Manifest) -> Answer:
        if not pod.get("spec"):
            return None
        return await self.ask(namespace, pod)


def _key(namespace: str, pod: Manifest) -> bytes:
    """Hash everything that the API server gets: it decides the answer, and may hold secrets."""
    return hashlib.sha256(msgspec.json.encode([namespace, pod])).digest()
