"""What the pages of one start read: how far it is, each from the beginning, and each thing once."""

import math
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any

from gpuspawner import messages
from gpuspawner.cluster.wakeups import Changes
from gpuspawner.launch.observed_pod import Seen
from gpuspawner.messages import Message
from gpuspawner.preflight.decision import Start, Wait
from gpuspawner.scaling.outlook import CanScaleUp
from gpuspawner.scheduling.node_images import NodeImages
from gpuspawner.troubles.giving_up import Course
from gpuspawner.troubles.steps import Stage, Step, UsualSteps
from gpuspawner.troubles.trouble import VAGUE, Kind, Trouble

REPEAT_SECONDS = 30.0
"""After so much silence, a page reads the last message again."""
_VAGUE_SECONDS = 5.0
"""How long a trouble of unknown cause lasts before it is told: a new volume takes a moment."""
_BRIEF_SECONDS = 1.0
"""How long a wait in a queue isn't worth a word: if there is quota, it takes less."""
_MOST_TEXTS = 100
"""Of events that wait for the next message; the newest count."""


class Progress:
    """What is told of one start, as the hub's progress stream has it."""

    def __init__(self) -> None:
        self._told: dict[int, dict[str, Any]] = {}
        self._count = 0
        self._replaced: int | None = None
        self._changes = Changes()
        self._percent = 0
        self._last: Message | None = None

    def tell(self, message: Message, percent: int, texts: Iterable[str] = ()) -> None:
        """Tell a message, and move the bar, which never moves back.

        *texts* is what Kubernetes says of it.
        """
        self._replaced = None
        told = messages.with_details_in_log(message, texts)
        told = told if self._told else messages.said_first(told)
        self._percent, self._last = max(self._percent, percent), message
        self._add(shown(told, self._percent))

    def tell_instead(self, message: Message, percent: int) -> None:
        """Tell a message that replaces the one before if that was told so too.

        A place in line changes a thousand times, and pages that open later read only the last.
        """
        if self._replaced is not None:
            del self._told[self._replaced]
        self.tell(message, percent)
        self._replaced = self._count - 1

    def move(self, percent: int) -> None:
        """Move the bar only.

        Programs that read the stream expect a message in each event, as JupyterHub documents it.
        """
        if percent > self._percent and self._last is not None:
            self._percent = percent
            self._add(shown(messages.said_before(self._last), percent))

    def _add(self, event: dict[str, Any]) -> None:
        self._told[self._count] = event
        self._count += 1
        self._changes.tell()

    async def read(self) -> AsyncIterator[dict[str, Any]]:
        """Yield all that was told and counts, and then whatever is; it never ends by itself.

        It also repeats the last message now and then: the hub ends the reading of a page that was
        closed only when it can't send it the next event.
        """
        number = 0
        while True:
            new = [event for told, event in self._told.items() if told >= number]
            number = self._count
            for event in new:
                yield dict(event)
            is_news = number < self._count or await self._changes.next(REPEAT_SECONDS)
            if not is_news and self._last is not None:
                yield shown(messages.said_before(self._last), self._percent)


def shown(message: Message, percent: int) -> dict[str, Any]:
    """Return a message as the hub's progress stream has it."""
    return {"progress": percent, "message": message.text, "html_message": message.html}


class Teller:
    """Tells what is seen of a start.

    Args:
        decision: The preflight's; if the start waits for a node, its page says so already.
    """

    def __init__(
        self, progress: Progress, decision: Start | Wait, usual: UsualSteps, images: NodeImages
    ) -> None:
        self._progress = progress
        self._decision = decision
        self._usual = usual
        self._images = images
        self._last: Stage | None = None
        self._mark = 0
        self._told: set[str] = set()
        self._place: Message | None = None
        self._untold: list[str] = []

    def tell(self, seen: Seen, course: Course) -> None:
        """Tell what is new, and move the bar."""
        last, elapsed = seen.stages[-1], course.in_stage(seen.stages[-1])
        self._untold = [*self._untold, *seen.texts][-_MOST_TEXTS:]
        bar = percent(seen.stages, elapsed, self._usual.seconds)
        hitches = _hitches(seen, course)
        if seen.is_queued:
            if elapsed >= _BRIEF_SECONDS:
                self._tell_place(seen)
        elif message := self._news(last, elapsed, hitches):
            texts, self._untold = self._untold, []
            self._progress.tell(message, bar, texts)
        else:
            self._progress.move(bar)
        if last.step is Step.RUNNING and (self._last is None or self._last.step is not last.step):
            self._usual.learn(seen.stages)
        self._last = last
        for trouble in hitches:
            self._tell_hitch(trouble)

    def _tell_place(self, seen: Seen) -> None:
        """Tell the place in a queue of Kueue, each time it changes; the bar waits."""
        place = messages.in_queue(seen.queue) if seen.queue else messages.step(seen.stages[-1])
        if place != self._place:
            self._place = place
            self._progress.tell_instead(place, 1)

    def _news(self, stage: Stage, elapsed: float, hitches: Sequence[Trouble]) -> Message | None:
        """Return what to tell of a stage: that it is reached, or that it takes long."""
        if self._is_new(stage):
            self._mark = 0
            return self._reached(stage)
        before, self._mark = self._mark, last_mark(elapsed)
        if self._mark <= before:
            return None
        return messages.hitch(hitches[0], self._mark) if hitches else self._still(stage)

    def _is_new(self, stage: Stage) -> bool:
        last = self._last
        return last is None or (last.step, last.image) != (stage.step, stage.image)

    def _reached(self, stage: Stage) -> Message | None:
        if isinstance(self._decision, Wait):
            if stage.step is Step.SCHEDULING:
                return None
            if stage.step is Step.NODE_STARTING:
                return messages.node_comes(self._decision.scale_up)
        return messages.step(stage, self._usual.seconds(stage), self._size(stage))

    def _still(self, stage: Stage) -> Message | None:
        if isinstance(self._decision, Wait) and stage.step in _WITHOUT_NODE:
            scale_up = self._decision.scale_up
            if stage.step is Step.NODE_STARTING or isinstance(scale_up, CanScaleUp):
                return messages.node_still_comes(scale_up, self._mark)
            return None  # whether one comes is what it waits to know
        return messages.still(stage, self._mark, self._usual.seconds(stage), self._size(stage))

    def _tell_hitch(self, trouble: Trouble) -> None:
        message = messages.hitch(trouble)
        if message.text not in self._told:
            self._told.add(message.text)
            self._untold = [it for it in self._untold if it != trouble.text]
            self._progress.tell(message, 0, (trouble.text,))

    def _size(self, stage: Stage) -> int | None:
        """Return the size of the image that is being pulled, if another node tells it."""
        return self._images.size(stage.image.image) if stage.image else None


_UNTOLD = (Kind.UNSCHEDULABLE, Kind.UNKNOWN)
"""Kinds without a sentence: the page says already that the start waits for a node, and a warning in
unknown words may be about anything. Their texts are among the details."""

_WITHOUT_NODE = (Step.SCHEDULING, Step.NODE_STARTING)


def _hitches(seen: Seen, course: Course) -> list[Trouble]:
    """Return what may still pass, unless its cause is told by another trouble."""
    present = [it for it in seen.troubles if not (it.is_final or it.is_over or it.kind in _UNTOLD)]
    if clear := [it for it in present if it.kind not in VAGUE]:
        return clear
    lasting = course.lasting()
    return [it for it in present if lasting.get(it.kind, 0.0) >= _VAGUE_SECONDS]


# When a page says again how long a start waits: often at first, so that nobody thinks it is stuck.
#
# A page that opens late reads all that was told, so the last mark is never much older than the
# wait.

_FIRST = (30, 60, 120, 180)
_THEN = 300
"""Each of these, in seconds."""


def last_mark(elapsed: float) -> int:
    """Return the last mark that has passed, in seconds; 0 before the first one."""
    regular = int(elapsed // _THEN) * _THEN
    return max((regular, *(it for it in _FIRST if it <= elapsed)))


# How far a start's progress bar is: each step takes the part of the bar that its usual time is.

_LEAST_PERCENT, _MOST_PERCENT = 5, 95
"""The bar's ends in percent: the hub itself says 0 and 100."""

_GUESSES = {
    Step.QUEUED: 2.0,
    Step.SCHEDULING: 2.0,
    Step.NODE_STARTING: 240.0,
    Step.NODE_FOUND: 2.0,
    Step.VOLUMES: 5.0,
    Step.PULLING: 30.0,
    Step.INITIALIZING: 5.0,
    Step.STARTING: 5.0,
    Step.RUNNING: 10.0,
}
"""The seconds of a step that hasn't been measured yet."""
_LONGEST = 86400.0
"""In seconds; longer times could add up to infinity."""
_ALWAYS = (Step.SCHEDULING, Step.NODE_FOUND, Step.PULLING, Step.STARTING, Step.RUNNING)


def percent(stages: Iterable[Stage], elapsed: float, usual: Callable[[Stage], float | None]) -> int:
    """Return how much of the bar is done.

    Args:
        stages: Those that the start has reached, in order.
        elapsed: How long it has been in the last one, in seconds.
        usual: Returns how long a stage usually takes, in seconds.
    """
    reached = tuple(stages)
    if not reached:
        return _LEAST_PERCENT
    takes = [_seconds(stage, usual) for stage in reached]
    here = takes[-1]
    done = sum(takes[:-1]) + here * (1 - math.exp(-max(elapsed, 0) / here))
    last = list(Step).index(reached[-1].step)
    ahead = sum(_GUESSES[step] for step in _ALWAYS if list(Step).index(step) > last)
    return int(_LEAST_PERCENT + (_MOST_PERCENT - _LEAST_PERCENT) * done / (sum(takes) + ahead))


def _seconds(stage: Stage, usual: Callable[[Stage], float | None]) -> float:
    return min(max(0.1, usual(stage) or _GUESSES[stage.step]), _LONGEST)
