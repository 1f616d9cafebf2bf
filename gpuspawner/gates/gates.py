"""The gates of one spawner, in the order in which the hub and KubeSpawner reach them.

1. `form`: if it refuses a form or query, the hub draws the form again.
2. `begin` runs for every start. It decides, and takes the reservation in the same tick.
3. `create_pod` checks the pod that is really sent.

They keep nothing between the first two gates, because JupyterHub 6.1 may run them on
different spawners.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import suppress
from functools import partial
from typing import Any

from jupyterhub.utils import maybe_future
from msgspec.structs import replace
from tornado import web

from gpuspawner import messages, runtime
from gpuspawner.compat import jupyterhub, kubespawner, pods
from gpuspawner.compat.database import database_of
from gpuspawner.gates import administrators_form, wait_option
from gpuspawner.gates.avoiding import avoiding
from gpuspawner.gates.eager_task import at_once
from gpuspawner.gates.form_gate import FormGate
from gpuspawner.gates.sources import Sources
from gpuspawner.kube.objects import Manifest
from gpuspawner.kube.servers import UNDISRUPTED
from gpuspawner.launch import failed_starts
from gpuspawner.launch.launching import limits, total
from gpuspawner.launch.progress import Progress
from gpuspawner.launch.run import Run
from gpuspawner.launch.server_state import ServerState
from gpuspawner.messages.administrators import explain_unknown
from gpuspawner.offers.grant import Grant
from gpuspawner.preflight.decision import Overruled, Start
from gpuspawner.preflight.dry_runs import Admission
from gpuspawner.preflight.preflight import START_PATIENCE
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.preflight.rejection import Of
from gpuspawner.reservations.granted import Granted, mark
from gpuspawner.start import connection, hooks
from gpuspawner.start.asking_preflight import LOST_ROOM, decide, refusing, warn
from gpuspawner.start.attempt import Attempt, TurnToStart
from gpuspawner.start.host import Host, log_name, set_locale
from gpuspawner.start.kueue_queue import model_in_queue
from gpuspawner.start.pod_builder import home_of
from gpuspawner.start.policing import policing
from gpuspawner.start.refusal import UNREACHABLE, Refusal, misconfigured, reporting
from gpuspawner.start.sending import Sending
from gpuspawner.start.source import Choice
from gpuspawner.start.stored_options import restoring
from gpuspawner.traits.trait_types import setting
from gpuspawner.troubles.facts import Happened


class Gates:
    """The gates of one spawner.

    Attributes:
        sources: What the server is chosen from, and the form for it.
        form: The first gate.
        server_state: What the hub stores of its servers.
        turn: When the current start is admitted.
        attempt: The current start; None before its second gate and after its end.
    """

    def __init__(self, spawner: Host) -> None:
        self._spawner = spawner
        self._stock = spawner.gpuspawner_stock
        self._runtime = runtime.current(spawner)
        database_of(spawner.orm_spawner)  # from now on, no failed commit harms others
        self._policing = policing(spawner, self._runtime)
        self.sources = Sources(spawner, self._runtime, self._policing)
        self.form = FormGate(spawner, self._runtime, self._policing, self.sources)
        self._reservations = self._runtime.preflight.reservations
        self._sending = Sending(spawner, self._reservations)
        self._begun = asyncio.Event()
        self._progress = Progress()
        self.server_state = ServerState(spawner, self._runtime)
        self.attempt: Attempt | None = None
        self.turn = self._new_turn()
        self._run = self._new_run()

    # Gate 2: every start

    def begin(self) -> Any:
        """Decide on a start and take its reservation, then run the administrator's hook."""
        set_locale(self._spawner)
        admitted = at_once(self._begin())
        if admitted is not None:
            return self._undone_if_cancelled(self._run_hook_after(admitted))
        hook = self._stock.kubespawner.run_pre_spawn_hook()
        return hook if hook is None else self._undone_if_cancelled(maybe_future(hook))

    async def _run_hook_after(self, admitted: Awaitable[None]) -> None:
        with failed_starts.explaining_late(self._spawner, self._runtime.failed_starts):
            await admitted
        await maybe_future(self._stock.kubespawner.run_pre_spawn_hook())

    async def _undone_if_cancelled(self, beginning: Awaitable[object]) -> None:
        """Await the beginning of a start; if it is cancelled, the hub itself may clear nothing."""
        try:
            await beginning
        except asyncio.CancelledError:
            self.server_state.cancelled()
            jupyterhub.forget_server(self._spawner)
            self._end_promise()
            raise

    async def _begin(self) -> None:
        """Take the reservation in the tick of the verdict; wait only for missing information."""
        with reporting(self._spawner), self.turn.giving_up_kept_place():
            await administrators_form.run(self._spawner)
            source = self.sources.current
            await source.ready(START_PATIENCE)
            if not kubespawner.connect(self._spawner):
                raise Refusal(messages.unreachable(), reason=UNREACHABLE)
            source.begin()
            # Here, too: the place is given up before the options are restored, because both write
            # to the database, and the hub may end in between.
            with restoring(self._spawner), self.turn.giving_up_kept_place():
                requested = await source.requested()
                options, wish = wait_option.split(requested.options, self._runtime.line)
                resolve = partial(self.sources.resolve, options)
                choice = await jupyterhub.surviving(self._spawner, resolve)
                attempt = await self.turn.through(choice, wish)
        self.attempt = attempt
        self._note_granted(attempt)
        if isinstance(attempt.decision, Start):
            for unknown in explain_unknown(attempt.decision):
                self._spawner.log.info(
                    "Starting %s unchecked: %s", log_name(self._spawner), unknown
                )
        self._spawner.user_options = dict(attempt.choice.options)
        self.server_state.forget()
        failed_starts.forget(self._spawner, self._runtime.failed_starts)
        for message in attempt.news(requested.gone):
            self._progress.tell(message, 5)
        self._begun.set()

    def _note_granted(self, attempt: Attempt) -> None:
        given = attempt.choice.proposal.grant
        for note in attempt.decision.notes if isinstance(attempt.decision, Start) else ():
            if isinstance(note, Overruled):
                why = note.refusal.reason.value
                self._runtime.note(Happened.OVERRULED, self._spawner, given, reason=why)
        self._runtime.note(Happened.GRANTED, self._spawner, given)

    # Gate 3: the pod that is really sent

    async def load_user_options(self) -> None:
        """Load the chosen profile; a failure is a misconfiguration, not a user's mistake.

        Raises:
            HTTPError: An administrator's function forbids the profile.
            Refusal: KubeSpawner can't load it.
        """
        before = self._spawner.start_timeout
        try:
            await self._stock.load_user_options()
        except Exception as error:
            is_theirs = isinstance(error, web.HTTPError) or kubespawner.is_of_others(error)
            # Without an attempt, it is a copy on which a profile is tried.
            if self.attempt is None or is_theirs:
                raise
            self._spawner.log.exception("Can't load the profile of %s", log_name(self._spawner))
            raise misconfigured(f"KubeSpawner.profile_list: {error!r}") from error
        if self._spawner.start_timeout != before:  # the profile sets its own
            self._wait_longer(self._spawner.start_timeout)

    async def pod_manifest(self) -> Any:
        """Return KubeSpawner's pod with this start's grant applied."""
        made = await self._stock.make_pod()
        if setting(self._spawner, "do_not_disrupt"):
            made.metadata.annotations = {**UNDISRUPTED, **(made.metadata.annotations or {})}
        pod = model_in_queue(self._spawner, self._runtime.view.queues, made)
        return self.attempt.complete(pod, self._checked) if self.attempt else pod

    def _checked(self, pod: Manifest) -> Manifest:
        """Return a pod with the check of its GPUs, if ``GPUSpawner.check_gpus`` is set."""
        if not setting(self._spawner, "check_gpus"):
            return pod
        from gpuspawner.offers.gpu_check import shared_gpus, with_gpu_check

        return with_gpu_check(pod, frozenset(shared_gpus(self._runtime.view.state, pod)))

    async def create_pod(self, pod: Any, request_timeout: float) -> bool:
        """Judge the pod that is really sent, and send it."""
        with reporting(self._spawner, Happened.ENDED):
            with restoring(self._spawner):
                create = partial(self._create_judged, pod, request_timeout)
                created = await jupyterhub.surviving(self._spawner, create)
            if created and self.attempt is not None:
                # Those of this start stay: hooks may have added something for later hooks.
                jupyterhub.store_for_next_start(self._spawner, dict(self.attempt.choice.options))
                self._run.created.set()
            return created

    async def _create_judged(self, pod: Any, request_timeout: float) -> bool:
        sent = pods.plain(pod)
        names = {"namespace": self._spawner.namespace, "name": pod.metadata.name}
        choice = self._choice().sending(sent, **names, new_claims=home_of(self._spawner))
        self._sending.rename(choice.proposal.key)
        if kept_off := await avoiding(self._spawner, self._runtime, choice, self._admission):
            choice, is_sure = kept_off
            if self.attempt and not self.attempt.is_sent:
                told = messages.elsewhere if is_sure else messages.perhaps_the_same
                self._progress.tell(told(), 5)
        pod = pods.changed(pod, sent, choice.proposal.pod)
        granted = await self._policing.take_sent(choice)
        if granted is not None:
            # An earlier gate may have known less of the pod, or judged by other policies.
            marked = mark(choice.proposal.pod, granted)
            pod = pods.changed(pod, choice.proposal.pod, marked)
            choice = choice.sending(marked)
        confirm = self._runtime.preflight.confirm
        try:
            decision = await decide(self._spawner, choice, confirm, self._admission)
        except Refusal as refusal:
            # An administrator's code may let a server on a node that it couldn't use before.
            if refusal.slug in LOST_ROOM:
                self._learn(sent)
            raise
        warn(self._spawner, decision)
        self._learn(sent)
        if self.attempt is not None:
            self.attempt = replace(self.attempt, choice=choice, decision=decision, is_sent=True)
        # No verdict comes after this wait, which lasts as long as the hub's database fails.
        self._reservations.hold(choice.proposal.key)
        await self.server_state.send(granted or Granted())
        self._run.sent.set()
        async with refusing(Of.POD, self._spawner, choice, self._admission):
            return await self._sending.send(choice.proposal.key, pod, request_timeout)

    def _learn(self, pod: Manifest) -> None:
        """Learn what the hub's own code has changed, when the pod is sent first."""
        if self.attempt is not None and not self.attempt.is_sent:
            it = self.attempt.choice.proposal
            self.sources.current.later.learn(it.kind, it.made, pod, it.chosen)

    async def delete_pod(self, options: Any, grace_seconds: int) -> bool:
        """Delete the pod; a start that does so itself fails, and its own error says why."""
        if self._run.deletes_its_pod():
            self._sending.follow_no_more()
        return await self._stock.delete_pod(options, grace_seconds)

    async def create_home(self, pvc: Any, request_timeout: float) -> Any:
        """Send the PersistentVolumeClaim of the user's home directory."""
        with reporting(self._spawner, Happened.ENDED):
            # Other choices need the same home directory, so a refusal has no alternatives.
            choice = Choice(self._choice().proposal)
            async with refusing(Of.HOME, self._spawner, choice, self._admission):
                return await self._stock.create_pvc(pvc, request_timeout)

    def _choice(self) -> Choice:
        if self.attempt is not None:
            return self.attempt.choice
        spawner = self._spawner
        return Choice(Proposal(spawner.namespace, spawner.pod_name, {}, Grant()))

    # What the gates share

    @property
    def _admission(self) -> Admission:
        return connection.admission(self._spawner, self._runtime.dry_runs)

    # The start and its end

    def start(self) -> asyncio.Future[Any]:
        """Start as KubeSpawner does, with a timeout for all phases of the start."""
        self._begun.set()  # other callers than the hub may skip the second gate
        configured, source = self._spawner.start_timeout, self.sources.current
        # An administrator's class may make it a coroutine, or set the timeout first.
        started: asyncio.Future[Any] = maybe_future(self._stock.kubespawner.start())
        # KubeSpawner loads the profile only after the hub has read the timeout.
        of_profile = self.attempt.choice.traits if self.attempt is not None else {}
        starting = of_profile.get("start_timeout", self._spawner.start_timeout)
        for name, value in of_profile.items():
            self._set(name, value)
        self._wait_longer(starting)

        def end(_: object) -> None:
            self._set("start_timeout", configured)
            source.end(started)
            if started.cancelled():
                self.server_state.cancelled()
                if not self._sending.may_exist:
                    jupyterhub.forget_server(self._spawner)

        started.add_done_callback(end)
        return started

    def _wait_longer(self, starting: float) -> None:
        """Add the earlier phases' limits to the timeout, which the hub and KubeSpawner both read.

        *starting* is what is configured: the limit of the last phase.
        """
        if (attempt := self.attempt) is not None:
            attempt = replace(attempt, starting=starting)
            longer = total(limits(self._spawner, attempt))
            self.attempt = attempt.ending_in(longer)
            self._set("start_timeout", longer)

    def _set(self, name: str, value: object) -> None:
        with suppress(AttributeError):  # a class of others may make it a property
            setattr(self._spawner, name, value)

    async def run_start(self) -> Any:
        """Run KubeSpawner's steps of a start, and always end its promise."""
        explained = failed_starts.explaining(self._spawner, self._runtime.failed_starts)
        ended = reporting(self._spawner, Happened.ENDED)
        with ended, explained, self.turn.kept_if_taken():
            self._run = run = self._new_run()
            key = self._choice().proposal.key
            return await self._sending.hold(key, run.until_it_listens(), run.until_failed())

    def _new_turn(self) -> TurnToStart:
        its = self._spawner, self._runtime, self._policing
        if self._runtime.line is None:
            return TurnToStart(*its)
        return self._runtime.line.turn(*its, self.server_state, self._progress, self._begun)

    def _new_run(self) -> Run:
        return Run(self._spawner, self._runtime, self._progress, lambda: self.attempt)

    async def stop(self, now: bool) -> None:
        """Stop as KubeSpawner does, which returns when the pod is gone."""
        await self._stock.kubespawner.stop(now)
        self._reservations.see_out(self._choice().proposal.key)
        self.server_state.store()

    async def poll(self) -> int | None:
        """Poll as KubeSpawner does, and note why a server has ended."""
        before = self._stock.known_pod()
        return self.server_state.polled(await connection.poll(self._spawner), before)

    async def progress(self) -> AsyncIterator[dict[str, Any]]:
        """Yield how far this start is, unless the administrator's class does."""
        await self._begun.wait()
        set_locale(self._spawner)
        if self._tells_progress:
            with self.turn.watched():
                async for event in self._progress.read():
                    yield event
        else:
            async for event in self._stock.kubespawner.progress():
                yield event

    @property
    def _tells_progress(self) -> bool:
        """Whether it is we who tell how far this start is."""
        is_ours = self.turn.has_waited or self.attempt is not None
        return is_ours and not kubespawner.has_own_progress(self._spawner)

    async def start_reflector(self, kind: str, reflector_class: Any, **kwargs: Any) -> Any:
        """Start one of KubeSpawner's reflectors; that of events only if somebody reads it."""
        if kind == "events" and self._tells_progress and not hooks.reads_events(self._spawner):
            return None  # what we tell comes from a watch of our own
        gone = self.server_state.farewell
        return await connection.start_reflector(self._stock, kind, gone, reflector_class, **kwargs)

    def clear(self) -> None:
        """Forget the start that has ended; the hub calls this after every start, failed or not."""
        self._stock.kubespawner.clear_state()
        self._runtime.note(Happened.ENDED, self._spawner, reason=self.server_state.why)
        self.server_state.clear()
        self._end_promise()
        self.attempt = None
        self._progress = Progress()
        self.turn = self._new_turn()
        self._begun.clear()

    def _end_promise(self) -> None:
        if self.attempt is not None:
            self._reservations.end(self.attempt.choice.proposal.key)
