"""Cuts many starts in the middle of each phase: ``python -m tests.race.cuts [STARTS]``.

In each wave, several servers start at once and stay in each phase until something happens to all
of them. Afterwards nobody may have been started twice, nothing may be left, and the last sentence
that each owner reads must be true.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.race.cut_stage import CutStage, cut_stage
from tests.race.cut_starts import READY, TRUE, Cut, Start
from tests.race.phases import phases
from tests.waiting import wait_for

SECONDS = 8.0
"""How long a phase lasts that the test can't end."""
_ALIKE = 5
"""How many starts of each phase a wave of the full size has."""
_PATIENCE = 120.0
_TRY_AGAIN = (
    "Spawn failed: The hub can't count right now how much is in use.",
    "Spawn failed: The hub can't start servers right now",
)
"""A pod that is sent again is judged again, perhaps before the hub sees the cluster again."""
_SURVIVED = (Cut.WATCHES, Cut.API_SERVER, Cut.HUB)


@dataclass
class Cutting:
    """The outcomes.

    Attributes:
        ends: How many starts ended how: phase, cut, and last sentence.
        missed: Starts that had left their phase before all others had reached theirs.
        wrong: What must not happen, one sentence each.
        longest_promise: How many seconds the hub kept a promise after all had ended.
    """

    starts: int = 0
    ends: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    missed: int = 0
    wrong: list[str] = field(default_factory=list)
    longest_promise: float = 0.0
    seconds: float = 0.0

    def lines(self) -> Iterator[str]:
        """Yield what the command prints."""
        for (phase, cut, sentence), count in sorted(self.ends.items()):
            yield f"{count:6d}  {phase}, {cut}: {sentence}"
        yield (
            f"{self.starts} starts in {self.seconds:.0f} s, {self.missed} not in their phase; "
            f"promises were kept for up to {self.longest_promise:.0f} s"
        )
        yield from self.wrong
        yield f"wrong: {len(self.wrong)}"


def kill_hub(stage: CutStage, _group: list[Start], _pool: ThreadPoolExecutor) -> None:
    """Kill the hub, and start it again."""
    stage.hub.kill()
    stage.gate.open()
    stage.hub.begin()
    stage.hub.until_it_serves()


def restart_api_server(stage: CutStage, _group: list[Start], _pool: ThreadPoolExecutor) -> None:
    stage.cluster.plane.stop_apiserver()
    stage.gate.open()
    stage.cluster.plane.start_apiserver()


def cut_watches(stage: CutStage, _group: list[Start], _pool: ThreadPoolExecutor) -> None:
    """Cut all connections of the hub, also those that send a pod."""
    stage.proxy.cut()


def cut_each(_stage: CutStage, group: list[Start], pool: ThreadPoolExecutor) -> None:
    """Delete or cancel each."""
    for start in group:
        if start.cut is Cut.POD:
            start.delete()
    list(pool.map(Start.cancel, (it for it in group if it.cut is Cut.CANCELLED)))


WAVES: tuple[tuple[tuple[Cut, ...], Callable[..., None]], ...] = (
    ((Cut.WATCHES,), cut_watches),
    ((Cut.API_SERVER,), restart_api_server),
    ((Cut.POD, Cut.CANCELLED), cut_each),
    ((Cut.HUB,), kill_hub),
)


_PASSING = (cut_watches, restart_api_server)
"""What a start survives."""


def run(folder: Path, starts: int, alike: int, seconds: float = SECONDS) -> Cutting:
    """Cut at least so many starts, in waves with *alike* starts of each phase."""
    every, result, began = phases(seconds), Cutting(), time.monotonic()
    with cut_stage(folder, every, 2 * alike * len(every)) as stage:
        number = 0
        while result.starts < starts:
            cuts, happens = WAVES[number % len(WAVES)]
            group = [
                Start(stage, phase, cut, number * alike + each)
                for phase in every
                for cut in cuts
                for each in range(alike)
                # Nobody can delete a pod that isn't there yet.
                if (phase.name, cut) != ("sending", Cut.POD)
            ]
            _wave(stage, group, happens, result)
            number += 1
    result.seconds = time.monotonic() - began
    return result


def _wave(
    stage: CutStage, group: list[Start], happens: Callable[..., None], result: Cutting
) -> None:
    stage.gate.close()
    with ThreadPoolExecutor(2 * len(group)) as pool:
        try:
            following = [pool.submit(it.follow) for it in group]
            result.missed += _until_all_are_in_their_phase(stage, group, following)
            happens(stage, group, pool)
            stage.gate.open()
            with _going_on(stage) if happens in _PASSING else nullcontext():
                if happens is not kill_hub:
                    for it in following:
                        it.result()
                ready = _ready(stage, group)
            if happens is kill_hub:
                list(pool.map(Start.read_next_page, (it for it in group if it not in ready)))
        finally:
            stage.gate.open()
        _judge(stage, group, ready, result)
        list(pool.map(lambda it: stage.hub.stop(it.user), ready))
    result.starts += len(group)
    _nothing_is_left(stage, result)


@contextmanager
def _going_on(stage: CutStage) -> Iterator[None]:
    """End the phases that the test can end."""
    stage.bind()
    with stage.listening():
        yield


def _until_all_are_in_their_phase(
    stage: CutStage, group: list[Start], following: list[Future[None]]
) -> int:
    """Wait until each start has been in its phase; return how many are no longer in it."""
    reached: set[str] = set()
    there: set[str] = set()

    def all_reached() -> bool:
        pods = stage.pods()
        there.clear()
        there.update(it.user for it in group if it.is_in_phase(pods))
        reached.update(there)
        over = {it.user for it, future in zip(group, following, strict=True) if future.done()}
        return len(reached | over) == len(group)

    wait_for(all_reached, _PATIENCE)
    return len(group) - len(there)


def _ready(stage: CutStage, group: list[Start]) -> list[Start]:
    """Wait until the hub is sure about each server, and return those that are ready."""
    known: dict[str, dict[str, Any]] = {}

    def is_sure() -> bool:
        answer = stage.hub.api("GET", "/users?state=active&limit=200")
        known.clear()
        known.update({user["name"]: user["servers"].get("", {}) for user in answer.json()})
        return all(known[it.user].get("ready") for it in group if it.user in known)

    wait_for(is_sure, _PATIENCE)
    return [it for it in group if it.user in known]


def _judge(stage: CutStage, group: list[Start], ready: list[Start], result: Cutting) -> None:
    owned = {it.pod for it in ready}
    try:
        wait_for(lambda: set(stage.pods()) == owned, 30)
    except TimeoutError:
        result.wrong.append(f"pods {sorted(stage.pods())} of servers {sorted(owned)}")
    for it in group:
        # A request whose connection was cut is sent again.
        may_be_sent_again = it.phase.name == "sending" and TRUE[it.cut] == READY
        true = (TRUE[it.cut], *(_TRY_AGAIN if may_be_sent_again else ()))
        told = next((begin for begin in true if it.last.startswith(begin)), None)
        if it in ready:
            told = READY if it.cut in _SURVIVED else None
        result.ends[it.phase.name, it.cut.value, it.last if told is None else told] += 1
        if told is None:
            result.wrong.append(f"{it.user} reads {it.last!r}")
        if stage.gate.sent[it.pod] > 1 and not may_be_sent_again:
            result.wrong.append(f"{it.user}'s pod was sent {stage.gate.sent[it.pod]} times")


def _nothing_is_left(stage: CutStage, result: Cutting) -> None:
    began = time.monotonic()
    try:
        wait_for(lambda: not stage.left() and not stage.pods(), 180)
    except TimeoutError:
        result.wrong.append(f"left: {stage.left()}, {sorted(stage.pods())}")
    result.longest_promise = max(result.longest_promise, time.monotonic() - began)


def main() -> int:
    """Cut a thousand starts; return 1 if anything is wrong."""
    starts = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory() as folder:
        result = run(Path(folder), starts, _ALIKE)
    for line in result.lines():
        print(line)
    return int(bool(result.wrong))


if __name__ == "__main__":
    sys.exit(main())
