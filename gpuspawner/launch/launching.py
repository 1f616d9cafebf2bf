"""Follows the pod of one start, and gives the start up as soon as it is in vain.

One loop asks at each change of the live view: is the pod lost, can it not become a server, does it
take too long, and will it get no node?
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

from msgspec.structs import replace

from gpuspawner import messages
from gpuspawner.cluster.health import ContactClock
from gpuspawner.cluster.pod_events import Heard
from gpuspawner.compat import jupyterhub, waiting
from gpuspawner.compat.hub_limits import preparing_seconds
from gpuspawner.kube.quoting import one_line
from gpuspawner.launch.observed_pod import AGAIN_SECONDS, InView, Seen, SeenPod, with_workload
from gpuspawner.launch.progress import Progress, Teller
from gpuspawner.launch.unscheduled import Check, WhyUnscheduled, bound
from gpuspawner.messages.causes import NOTHING
from gpuspawner.offers.grant import Grant
from gpuspawner.preflight.decision import Start, Wait
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.runtime import Runtime
from gpuspawner.scaling.usual_times import longest_wait
from gpuspawner.start import connection
from gpuspawner.start.asking_preflight import decide, warn
from gpuspawner.start.attempt import Attempt
from gpuspawner.start.host import Host, log_name
from gpuspawner.start.refusal import Refusal, is_to_pass
from gpuspawner.start.source import Choice
from gpuspawner.traits import OFF
from gpuspawner.traits.trait_types import setting
from gpuspawner.troubles.avoided_nodes import BROKEN
from gpuspawner.troubles.ending import is_lost
from gpuspawner.troubles.giving_up import Course, GivenUp, StartPhase, hopeless, late, phase
from gpuspawner.troubles.steps import Step
from gpuspawner.troubles.trouble import Kind, Trouble

_LONGEST = 10.0**8
"""In seconds, three years: administrators may set infinity, which the hub's timeout can't be."""
_ADMITTED_SECONDS = 2.0
"""How long Kueue usually takes to admit a pod at most, if there is quota."""


@contextmanager
def going_on_untold(spawner: Host) -> Iterator[None]:
    """Let a start go on if following it fails by a bug of ours, which keeps no user from a server.

    Refusals, errors of an administrator's code, and faults of the hub's database pass.
    """
    try:
        yield
    except Exception as error:
        if is_to_pass(error):
            raise
        name = log_name(spawner)
        spawner.log.exception("Following %s failed; its start goes on untold", name)


class Launching:
    """One start, from the creation of its pod on.

    Attributes:
        course: For how long it has been in each phase.
        seen: What was seen at the last look.
        was_ready: Whether all containers have been ready at once, as KubeSpawner asks. From then
            on it looks at the server's only, and others may end.

    Args:
        question: Whether the pod will get no node, as `unscheduled.question` makes it.
    """

    def __init__(
        self,
        spawner: Host,
        runtime: Runtime,
        progress: Progress,
        attempt: Attempt,
        question: WhyUnscheduled | None,
    ) -> None:
        self._spawner = spawner
        self._runtime = runtime
        self._proposal: Proposal = attempt.choice.proposal
        self._attempt = attempt
        self._question = question
        phases = limits(spawner, attempt)
        # If admission alone puts the pod into a queue, it waits for quota as long as the hub does.
        queued = max(phases[StartPhase.QUEUED], attempt.seconds_left)
        self._limits = {**phases, StartPhase.QUEUED: queued}
        self._had_longer = False
        key = self._proposal.key
        stock, in_view = spawner.gpuspawner_stock, InView(runtime.view, "/".join(key))
        self._pod = SeenPod(stock, in_view.is_lost, lambda: runtime.farewells.of(key))
        self._uncounted = ExitStack()
        self._is_untold = False
        self._contact = ContactClock(runtime.view.lost_contact)
        self.course = Course()
        self.seen = Seen()
        self.was_ready = False
        usual, images = runtime.usual_steps, runtime.view.state.images
        self._teller = Teller(progress, attempt.decision, usual, images)

    async def until_failed(self, heard: Heard) -> None:
        """Follow the pod and its events, and tell of them.

        Raises:
            Refusal: The start is in vain, or takes too long.
        """
        self._runtime.farewells.forget(self._proposal.key)  # of an older pod of the name
        with self._uncounted:
            while not self._is_untold or self._question is not None:
                self._contact.tick()
                await self._look(heard)
                await self._ask()
                await self._runtime.view.changed(AGAIN_SECONDS)

    async def _look(self, heard: Heard) -> None:
        """Tell of what is seen, and refuse the start if its pod can't become a server."""
        if self._is_untold:
            return
        self._is_untold = True
        with going_on_untold(self._spawner):
            if seen := self._pod.look(heard):
                view, pod = self._runtime.view, self._proposal.decoded
                known = self._without_lost(seen)
                await self._mind(with_workload(known, view.queues, pod, view.state.rules))
            if self._pod.is_blind and self._contact.seconds > self._blind_seconds:
                raise refused(GivenUp(late=StartPhase.SCHEDULED), self._proposal.grant)
            self._is_untold = False

    async def _mind(self, seen: Seen) -> None:
        before, self.seen = self.seen, seen
        self.course.note(seen.stages, seen.troubles, self._contact.seconds)
        self._mind_queue(before, seen)
        self._teller.tell(seen, self.course)
        if failure := self._failure(seen):
            self._note_broken(failure, seen.node)
            is_final = failure.late is not StartPhase.SCHEDULED
            if is_final or not await self._goes_on(seen):
                raise refused(failure, self._proposal.grant, seen.node)

    @property
    def troubles(self) -> tuple[Trouble, ...]:
        """What went wrong at the last look, and matters by now."""
        if not self.was_ready:
            return self.seen.troubles
        its = "", self.seen.server
        return tuple(it for it in self.seen.troubles if it.about.container in its)

    async def _goes_on(self, seen: Seen) -> bool:
        """Judge a pod that has got no node in time, and return whether it may get one still.

        Raises:
            Refusal: It won't, and the preflight knows why.
        """
        check = self._runtime.preflight.decider.check_sent
        decision = await self._decided(self._attempt.choice.created(), check)
        return decision is None or self._gets_longer(seen, decision)

    async def _decided(self, choice: Choice, check: Check) -> Start | Wait | None:
        """Ask the preflight; None if the pod gets its node meanwhile, whatever the answer is.

        Raises:
            Refusal: The pod gets no node.
        """
        admission = connection.admission(self._spawner, self._runtime.dry_runs)
        try:
            decision = await decide(self._spawner, choice, lambda it, _: check(it), admission)
        except Refusal:
            if self._has_node():
                return None
            raise
        return None if self._has_node() else decision

    def _has_node(self) -> bool:
        """Whether the pod has a node by now: the view or KubeSpawner's reflector may know first."""
        is_bound = bound(self._runtime.view, self._proposal) is not None
        return is_bound or self._pod.has_node()

    async def _ask(self) -> None:
        """Refuse the start if its pod will get no node, or warn of that once."""
        try:
            refusal = self._question() if self._question else None
        except Exception:
            # A bug of ours must not keep users from getting servers.
            name = log_name(self._spawner)
            self._spawner.log.exception("The preflight failed; %s's start goes on unchecked", name)
            self._question = refusal = None
        if refusal is not None:
            self._question = None
            if decision := await self._decided(self._attempt.choice, lambda _: refusal):
                warn(self._spawner, decision)

    def _mind_queue(self, before: Seen, seen: Seen) -> None:
        """Let a pod that waits in a queue of Kueue take nothing from others.

        It has no room on a node, and isn't one of those that the hub starts at a time.
        """
        if seen.is_queued and not before.is_queued:
            self._uncounted.enter_context(waiting.uncounted(jupyterhub.identity(self._spawner)))
        elif before.is_queued and not seen.is_queued:
            self._uncounted.close()
        if seen.is_queued and self.course.in_stage(seen.stages[-1]) > _ADMITTED_SECONDS:
            self._runtime.preflight.reservations.release(self._proposal.key)

    @property
    def _blind_seconds(self) -> float:
        """How long the pod may be unseen; KubeSpawner reads again after the API server was away."""
        return max(self._limits[StartPhase.SCHEDULED], self._limits[StartPhase.STARTED])

    def _without_lost(self, seen: Seen) -> Seen:
        """Leave out that the node was lost if it is back; no event of the pod says that.

        A node that was well before contact was lost is no proof of a loss: the next look decides.
        """
        if is_lost(self._runtime.view.state.nodes.get(seen.node)):
            return seen
        present = (it for it in seen.troubles if it.is_final or it.kind is not Kind.NODE_LOST)
        return replace(seen, troubles=tuple(present))

    def _lasts(self, it: Trouble) -> bool:
        """Whether it lasts, as far as anybody knows.

        If only an event says that the node was lost, and nobody sees the node, it may be back.
        """
        view = self._runtime.view
        is_seen = view.in_touch() or self.seen.node in view.state.nodes
        return is_seen or it.is_final or it.kind is not Kind.NODE_LOST or it.about.container != ""

    def _failure(self, seen: Seen) -> GivenUp | None:
        if failure := hopeless(filter(self._lasts, self.troubles), self.course.lasting()):
            return failure
        if self.was_ready:  # `until_it_listens` has the limit of what follows
            return None
        at = phase(seen.stages)
        is_late = self.course.in_phase(at) > self._limits[at]
        return late(seen.troubles, at) if is_late else None

    def _gets_longer(self, seen: Seen, decision: Start | Wait) -> bool:
        """Give a pod that may still get a node more time, once; return whether there is some.

        Its room may have gone, and a new node may come instead. Or kube-scheduler says nothing: it
        may be waiting for a new volume, which it has made before it binds the pod.
        """
        if self._had_longer or isinstance(self._attempt.decision, Wait):
            return False
        self._had_longer = True
        had, starting = self._limits[StartPhase.SCHEDULED], self._attempt.starting
        left = self._attempt.seconds_left
        is_silent = all(it.kind is not Kind.UNSCHEDULABLE for it in seen.troubles)
        comes = any(it.step is Step.NODE_STARTING for it in seen.stages)
        if comes or isinstance(decision, Wait):
            if self._attempt.choice.proposal.queue or left == math.inf:
                # Nothing limits the wait in a queue, so years are left of the hub's timeout.
                scale_up = decision.scale_up if isinstance(decision, Wait) else None
                left = min(left, max(starting, longest_wait(scale_up)))
            longer = had + left
        else:
            longer = min(had + left, starting) if is_silent else had
        self._limits = {**self._limits, StartPhase.SCHEDULED: longer}
        return longer > had

    def _note_broken(self, failure: GivenUp, node: str) -> None:
        """Note that the owner's next server should get another node, if this one is broken."""
        if node and failure.cause and failure.cause.kind in BROKEN:
            self._runtime.avoided.avoid(self._spawner.user.name, node)


def limits(spawner: Host, attempt: Attempt) -> Mapping[StartPhase, float]:
    """Return the limit of each phase, in seconds.

    KubeSpawner's ``start_timeout`` is the limit of the containers' start. If nobody knows whether
    the pod fits, it waits for a node as long as with KubeSpawner. Nothing limits the wait in a
    queue of Kueue.
    """
    for_a_node, decision = attempt.seconds_for_a_node, attempt.decision
    if isinstance(decision, Wait):
        scheduled: float = for_a_node
    else:
        others = decision.seconds_to_make_room
        is_judged = others is not None and setting(spawner, "preflight") != OFF
        known = (
            setting(spawner, "scheduling_timeout") + (others or 0)
            if is_judged
            else attempt.starting
        )
        scheduled = max(known, for_a_node)
    return {
        StartPhase.QUEUED: _LONGEST if attempt.choice.proposal.queue else 0.0,
        StartPhase.SCHEDULED: scheduled,
        StartPhase.PREPARED: preparing_seconds(
            setting(spawner, "preparing_timeout"), attempt.starting
        ),
        StartPhase.STARTED: attempt.starting,
        StartPhase.ANSWERED: float(spawner.http_timeout),
    }


def total(phases: Mapping[StartPhase, float]) -> int:
    """Return the seconds of all phases; the hub and KubeSpawner give a start up after these."""
    return math.ceil(min(sum(phases.values()), _LONGEST))


def not_sent(error: TimeoutError) -> Refusal:
    """Make the refusal of a start whose pod or home directory KubeSpawner couldn't create."""
    return Refusal(messages.unreachable(), reason="unreachable", details=str(error))


def not_started(error: TimeoutError, troubles: Iterable[Trouble], node: str) -> Refusal:
    """Make the refusal of a start that KubeSpawner gives up, perhaps without seeing its pod."""
    failure = late(troubles, StartPhase.STARTED)
    if failure.cause is not None:
        return refused(failure, node=node)
    return Refusal(
        messages.failure(failure), reason="not-started", details=_in_log(node, str(error))
    )


def refused(failure: GivenUp, grant: Grant = NOTHING, node: str = "") -> Refusal:
    """Return the refusal of a start that is given up.

    *grant* is what it was to get. The hub's log names the *node* that the pod had: if starts fail
    there again and again, administrators have to find it.
    """
    cause = failure.cause
    text = cause.text if cause else ""
    return Refusal(
        messages.with_details(messages.failure(failure, grant), (text,) if text else ()),
        reason=cause.kind.value if cause else f"not-{failure.late}",
        details=_in_log(node, text),
    )


def _in_log(node: str, text: str) -> str:
    return "; ".join(filter(None, (node and f"on {one_line(node)}", text)))
