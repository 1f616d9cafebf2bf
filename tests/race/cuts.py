"""Cuts many starts in the middle of each phase: ``python -m tests.race.cuts [STARTS]``.

In each wave, several servers start at once and stay in each phase until something happens to all
of them. Afterwards nobody may have been started twice, nothing may be left, and the last sentence
that each owner reads must be true.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import requests

from localcluster.client import unless_gone
from tests.race.cut_stage import CutStage, Phase, cut_stage
from tests.race.stage import Object, Result
from tests.race.troubles import begin_again
from tests.waiting import wait_for

_SECONDS = 8.0
"""How long a phase lasts that the test can't end."""
_ALIKE = 5
"""How many starts of each phase and cut a wave has."""
_PATIENCE = 120.0
_SILENT = 15.0
"""The progress stream of a hub that lives is never silent for longer than 8 s."""

_READY = "Server ready at "
_TRY_AGAIN = (
    "Spawn failed: The hub can't count right now how much is in use.",
    "Spawn failed: The hub can't start servers right now",
)
"""A pod that is sent again is judged again, perhaps before the hub sees the cluster again."""


class Cut(Enum):
    """What happens in the middle of a phase."""

    HUB = "the hub is killed"
    API_SERVER = "the API server is restarted"
    WATCHES = "the hub's connections are cut"
    POD = "the pod is deleted"
    CANCELLED = "the start is cancelled"


_TRUE = {
    Cut.HUB: "Your last server didn't start, because the hub was restarted meanwhile.",
    Cut.API_SERVER: _READY,
    Cut.WATCHES: _READY,
    Cut.POD: "Spawn failed: Your server was deleted while it was starting.",
    Cut.CANCELLED: "Spawn cancelled",
}
"""How the last sentence begins that the owner reads."""
_PASSING = (Cut.WATCHES, Cut.API_SERVER)
"""What a start survives; it may survive the hub's end."""
_WAVES = ((Cut.WATCHES,), (Cut.API_SERVER,), (Cut.POD, Cut.CANCELLED), (Cut.HUB,))


@dataclass
class Start:
    """One start of one user, who has no other.

    Attributes:
        last: The last sentence that the user has read.
    """

    cut_stage: CutStage
    phase: Phase
    cut: Cut
    number: int
    last: str = ""

    def __post_init__(self) -> None:
        self.hub = self.cut_stage.stage.hub
        self.user = f"{self.phase.name}-{self.cut.name.lower().replace('_', '-')}-{self.number}"
        self.pod = f"jupyter-{self.user}"

    def follow(self) -> None:
        """Start the server, and remember the last sentence of its progress; "" if it was cut."""
        with suppress(requests.RequestException):
            answer = self.hub.start(self.user, {"profile": self.phase.name})
            assert answer.status_code == 202, answer.text
            for event in self.hub.follow(self.user, timeout=_SILENT):
                self.last = event.get("message", self.last)

    def is_in_phase(self, pods: dict[str, Object]) -> bool:
        if self.pod in self.cut_stage.gate.held:
            return True
        # The hub tells of a pod as soon as it sees it.
        return self.pod in pods and bool(self.last) and self.phase.is_reached(pods[self.pod])

    def delete(self) -> None:
        with unless_gone():
            self.hub.pods.delete(self.user)

    def cancel(self) -> None:
        self.hub.api("DELETE", f"/users/{self.user}/server")

    def read_next_page(self) -> None:
        """Remember what the owner reads next, whose progress was cut."""
        page = self.hub.person(self.user).open(f"/hub/spawn/{self.user}")
        _, begins, rest = page.text.partition(_TRUE[Cut.HUB])
        self.last = begins + rest if begins else f"{page.status} {page.text}"

    def told(self, is_ready: bool) -> str | None:
        """Return the beginning of the last sentence, or None if that sentence isn't true."""
        if is_ready:
            return _READY if self.cut in (*_PASSING, Cut.HUB) else None
        true = (_TRUE[self.cut], *(_TRY_AGAIN if self.may_be_sent_again else ()))
        return next((begin for begin in true if self.last.startswith(begin)), None)

    @property
    def may_be_sent_again(self) -> bool:
        """Whether the connection is cut on which the pod is sent."""
        return self.phase.name == "sending" and self.cut in _PASSING


def run(folder: Path, starts: int) -> Result:
    """Cut at least so many starts, wave after wave.

    The result counts how many starts ended how: phase, cut, and last sentence.
    """
    result, number = Result(), 0
    with cut_stage(folder, _ALIKE, _SECONDS) as stage:
        while result.counts.total() < starts:
            group = [
                Start(stage, phase, cut, number * _ALIKE + each)
                for phase in stage.phases
                for cut in _WAVES[number % len(_WAVES)]
                for each in range(_ALIKE)
                # Nobody can delete a pod that isn't there yet.
                if (phase.name, cut) != ("sending", Cut.POD)
            ]
            ready = _wave(stage, group)
            _judge(stage, group, ready, result)
            _stop(stage, ready, result)
            number += 1
    return result


def _wave(stage: CutStage, group: Sequence[Start]) -> list[Start]:
    """Cut these starts in their phases; return those whose servers are ready afterwards."""
    cut = group[0].cut
    stage.gate.close()
    with ThreadPoolExecutor(2 * len(group)) as pool:
        try:
            following = [pool.submit(it.follow) for it in group]
            in_phase: set[str] = set()
            wait_for(lambda: _are_reached(stage, group, following, in_phase), _PATIENCE)
            pods = stage.pods()
            in_time = sum(it.is_in_phase(pods) for it in group)
            print(f"{in_time} of {len(group)} are cut in their phase", flush=True)
            _cut(stage, cut, group, pool)
            stage.gate.open()
            with stage.going_on() if cut in _PASSING else nullcontext():
                if cut is not Cut.HUB:
                    for it in following:
                        it.result()
                ready = _ready(stage, group)
            if cut is Cut.HUB:
                list(pool.map(Start.read_next_page, (it for it in group if it not in ready)))
        finally:
            stage.gate.open()
    return ready


def _cut(stage: CutStage, cut: Cut, group: Sequence[Start], pool: ThreadPoolExecutor) -> None:
    """Let it happen to all of these starts; open the gate while nobody can hear what it says."""
    match cut:
        case Cut.HUB:
            stage.stage.hub.kill()
            stage.gate.open()
            begin_again(stage.stage.hub)
        case Cut.API_SERVER:
            stage.stage.cluster.plane.stop_apiserver()
            stage.gate.open()
            stage.stage.cluster.plane.start_apiserver()
        case Cut.WATCHES:
            stage.stage.proxy.cut()  # all connections, also those that send a pod
        case Cut.POD | Cut.CANCELLED:
            for start in group:
                if start.cut is Cut.POD:
                    start.delete()
            list(pool.map(Start.cancel, (it for it in group if it.cut is Cut.CANCELLED)))


def _are_reached(
    stage: CutStage, group: Sequence[Start], following: Sequence[Future[None]], reached: set[str]
) -> bool:
    """Return whether each start has been in its phase at some look, or is over."""
    pods = stage.pods()
    reached.update(it.user for it in group if it.is_in_phase(pods))
    over = {it.user for it, future in zip(group, following, strict=True) if future.done()}
    return len(reached | over) == len(group)


def _ready(stage: CutStage, group: Sequence[Start]) -> list[Start]:
    """Wait until the hub is sure about each server, and return those that are ready."""
    known: list[Start] = []

    def is_sure() -> bool:
        users = stage.stage.hub.api("GET", "/users?state=active&limit=200").json()
        servers = {user["name"]: user["servers"].get("", {}) for user in users}
        known[:] = [it for it in group if it.user in servers]
        return all(servers[it.user].get("ready") for it in known)

    wait_for(is_sure, _PATIENCE)
    return known


def _judge(stage: CutStage, group: Sequence[Start], ready: Sequence[Start], result: Result) -> None:
    owned = {it.pod for it in ready}
    try:
        wait_for(lambda: set(stage.pods()) == owned, 30)
    except TimeoutError:
        result.wrong.append(f"pods {sorted(stage.pods())} of servers {sorted(owned)}")
    for it in group:
        told = it.told(it in ready)
        result.counts[f"{it.phase.name}, {it.cut.value}: {told or it.last}"] += 1
        if told is None:
            result.wrong.append(f"{it.user} reads {it.last!r}")
        sent = stage.gate.sent[it.pod]
        if sent > 1 and not it.may_be_sent_again:
            result.wrong.append(f"{it.user}'s pod was sent {sent} times")


def _stop(stage: CutStage, ready: Sequence[Start], result: Result) -> None:
    """Stop these servers; then nothing may be left."""
    with ThreadPoolExecutor(_ALIKE) as pool:
        list(pool.map(lambda it: it.hub.stop(it.user), ready))
    try:
        wait_for(lambda: not stage.stage.promises() and not stage.pods(), 180)
    except TimeoutError:
        result.wrong.append(f"left: {stage.stage.promises()}, {sorted(stage.pods())}")


def main() -> int:
    """Cut a thousand starts; return 1 if anything is wrong."""
    starts = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory() as folder:
        result = run(Path(folder), starts)
    print(result)
    return int(bool(result.wrong))


if __name__ == "__main__":
    sys.exit(main())
