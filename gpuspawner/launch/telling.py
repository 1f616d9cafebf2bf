"""Tells the pages of a start how far it is, each thing once."""

from collections.abc import Sequence

from gpuspawner import messages
from gpuspawner.launch.sight import Seen
from gpuspawner.launch.story import Story
from gpuspawner.messages import Message
from gpuspawner.preflight.decision import Start, Wait
from gpuspawner.scaling.outlook import CanScaleUp
from gpuspawner.scheduling.node_images import NodeImages
from gpuspawner.troubles.course import Course, last_mark, percent
from gpuspawner.troubles.steps import Stage, Step
from gpuspawner.troubles.trouble import VAGUE, Kind, Trouble
from gpuspawner.troubles.usual import UsualSteps

_VAGUE_SECONDS = 5.0
"""How long a trouble of unknown cause lasts before it is told: a new volume takes a moment."""

_BRIEF_SECONDS = 1.0
"""How long a wait in a queue isn't worth a word: if there is quota, it takes less."""

_MOST_TEXTS = 100
"""Of events that wait for the next message; the newest count."""


class Telling:
    """Turns what is seen of a start into its story.

    Args:
        decision: The preflight's; if the start waits for a node, its page says so already.
    """

    def __init__(
        self, story: Story, decision: Start | Wait, usual: UsualSteps, images: NodeImages
    ) -> None:
        self._story = story
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
            self._story.tell(message, bar, texts)
        else:
            self._story.move(bar)
        if last.step is Step.RUNNING and (self._last is None or self._last.step is not last.step):
            self._usual.learn(seen.stages)
        self._last = last
        for trouble in hitches:
            self._tell_hitch(trouble)

    def _tell_place(self, seen: Seen) -> None:
        """Tell the place in a queue of Kueue, each time it changes; the bar waits."""
        place = messages.in_queue(seen.line) if seen.line else messages.step(seen.stages[-1])
        if place != self._place:
            self._place = place
            self._story.tell_instead(place, 1)

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
        usual = self._usual.seconds(stage)
        return messages.still(stage, self._mark, usual, self._size(stage))

    def _tell_hitch(self, trouble: Trouble) -> None:
        message = messages.hitch(trouble)
        if message.text not in self._told:
            self._told.add(message.text)
            self._untold = [it for it in self._untold if it != trouble.text]
            self._story.tell(message, 0, (trouble.text,))

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
