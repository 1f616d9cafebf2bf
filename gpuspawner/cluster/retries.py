"""When a watcher gives up an answer, and when it asks again."""

import asyncio
import math
import random
import time

import msgspec
from msgspec.structs import replace

from gpuspawner.cluster.client import RequestError
from gpuspawner.cluster.wakeups import Contact

# Seconds. If a server keeps changing what it says, the waits must get longer even so.
_BETWEEN_HURRIES = 60.0
REFUSALS = (403, 404)
"""Answers that may stay the same for good."""


class Backoff(msgspec.Struct, frozen=True):
    """Time-outs, and waits before a retry, in seconds.

    Attributes:
        page: Silence after which reading a page fails.
        watch: When the server should end a watch. It is short, so that every connection proves that
            it is alive at least that often; starting the next watch costs next to nothing.
        catch_up: The same for the first watch after contact was lost. Its end means that the server
            has sent all missed changes. So does a bookmark, which an API server that has seen a
            change of this kind sends two seconds earlier.
        silence: Silence after which a watch fails; longer than `watch`.
        first_retry: The longest wait after a first failure; doubled with each further one.
        last_retry: The limit of that doubling.
        last_if_refused: The limit if the server forbids or lacks what is asked for, if longer.
        doubt: How long an API server may forbid what it has allowed, before the right counts as
            withdrawn; and how long its answers may say nothing about an API that it lacked.
    """

    page: float = 30.0
    watch: float = 60.0
    catch_up: float = 3.0
    silence: float = 75.0
    first_retry: float = 0.5
    last_retry: float = 8.0
    last_if_refused: float = 0.0
    doubt: float = 10.0

    def unhurried(self) -> "Backoff":
        """Return slower retries for what may be forbidden for good, to spare the server's logs."""
        return replace(self, last_if_refused=10 * self.last_retry)

    def after(self, error: RequestError) -> "Backoff":
        """Return the waits after such a failure."""
        if error.status not in REFUSALS or self.last_if_refused <= self.last_retry:
            return self
        return replace(self, last_retry=self.last_if_refused)

    def before_retry(self, failures: int) -> float:
        """Return the seconds to wait after so many failures in a row, with jitter.

        Many hubs must not reach a restarting API server in step.
        """
        longest = min(self.last_retry, self.first_retry * 2.0 ** min(failures - 1, 16))
        return random.uniform(longest / 4, longest)  # noqa: S311 - jitter is no secret


class Retries:
    """The waits of one watcher, longer with each failure in a row.

    If the server was out of reach, they begin anew when all its watchers are woken.
    """

    def __init__(self, backoff: Backoff, contact: Contact) -> None:
        self._backoff = backoff
        self._contact = contact
        self._failures = 0
        self._wakes = contact.wakes
        """The wakes before the last request: one that comes during a request counts after it."""
        self._is_out_of_reach = False
        self._hurried = -math.inf

    def begin(self) -> None:
        """Note that a request begins."""
        if self._wakes != self._contact.wakes:
            self._wakes = self._contact.wakes
            if self._is_out_of_reach:
                self._is_out_of_reach, self._failures = False, 0

    def reach(self) -> None:
        """Note that the server has answered, whatever it says."""
        if self._is_out_of_reach:
            if self._wakes == self._contact.wakes:  # else, another has been faster
                self._contact.wake()
            self.begin()
            self._is_out_of_reach = False

    def succeed(self) -> None:
        """Note that the server has sent what was asked for."""
        self._failures, self._hurried = 0, -math.inf
        self._wakes = self._contact.wakes

    def fail(self, *, is_away: bool) -> None:
        """Count a failure, and note whether the server is away, or has answered."""
        if not is_away:
            self.reach()
        self._failures += 1
        self._is_out_of_reach = is_away

    def hurry(self) -> None:
        """Begin the waits anew, because the server says something new; at most once a minute."""
        now = time.monotonic()
        if now - self._hurried >= _BETWEEN_HURRIES:
            self._hurried = now
            self._failures = min(self._failures, 1)

    async def wait(self, error: RequestError) -> None:
        """Wait after a failure: as long as the server asks, and then for the rest or a wake."""
        seconds = self._backoff.after(error).before_retry(self._failures)
        await asyncio.sleep(error.retry_after)
        await self._contact.wait(self._wakes, seconds - error.retry_after)
