"""Starts as they are seen, and what a page shows of them."""

from collections.abc import Iterable, Sequence

from gpuspawner.launch.observed_pod import Seen
from gpuspawner.launch.progress import Progress, Teller
from gpuspawner.launch.unscheduled import WhyUnscheduled
from gpuspawner.messages import Message, with_details_in_log
from gpuspawner.offers.grant import Grant
from gpuspawner.preflight.decision import Refuse, Start, Wait
from gpuspawner.scheduling.node_images import NodeImages
from gpuspawner.troubles.giving_up import Course
from gpuspawner.troubles.steps import Stage, UsualSteps
from gpuspawner.troubles.trouble import Trouble
from tests.unit.makers.worlds import StillView

UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
"""The condition of a pod that kube-scheduler has tried in vain."""


async def answered(view: StillView, question: WhyUnscheduled) -> Refuse:
    """Ask as a start does, until there is a refusal."""
    while (refusal := question()) is None:
        await view.changed(1)
    return refusal


class Page(Progress):
    """The progress of a start, and what a page shows of it."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[Message] = []
        self.bar: list[int] = []

    @property
    def texts(self) -> list[str]:
        return [it.text for it in self.told]

    def tell(self, message: Message, percent: int, texts: Iterable[str] = ()) -> None:
        self.told.append(with_details_in_log(message, texts))
        self.move(percent)

    def tell_instead(self, message: Message, percent: int) -> None:
        self.tell(message, percent)

    def move(self, percent: int) -> None:
        self.bar.append(percent)


class Launch:
    """One start, as it is seen, and the page that follows it."""

    def __init__(
        self, decision: Start | Wait | None = None, usual: UsualSteps | None = None
    ) -> None:
        self.page = Page()
        usual = usual or UsualSteps()
        self._teller = Teller(self.page, decision or Start(Grant()), usual, NodeImages())
        self._course = Course()
        self._now = 1000.0

    def see(
        self,
        *stages: Stage,
        after: float = 0,
        troubles: Sequence[Trouble] = (),
        texts: Sequence[str] = (),
    ) -> None:
        self.look(Seen(stages, tuple(troubles), tuple(texts)), after)

    def look(self, seen: Seen, after: float = 0) -> None:
        self._now += after
        self._course.note(seen.stages, seen.troubles, self._now)
        self._teller.tell(seen, self._course)
