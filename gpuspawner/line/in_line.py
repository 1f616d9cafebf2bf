"""Waits in line for one start, and tells its owner the place."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from math import inf
from typing import NoReturn

from msgspec import structs

from gpuspawner import language
from gpuspawner.compat import jupyterhub, kubespawner, people, waiting
from gpuspawner.form.addresses import line
from gpuspawner.launch import failed_starts
from gpuspawner.launch.progress import Progress
from gpuspawner.launch.server_state import ServerState
from gpuspawner.line.front_of_line import GONE_SECONDS
from gpuspawner.line.joining import HELD_BACK, PASSES, deciding, lets_join, lets_stay
from gpuspawner.line.queue_config import QueueRules
from gpuspawner.line.resuming import resume
from gpuspawner.line.stored_places import Server, StoredPlaces
from gpuspawner.line.tickets import Ticket
from gpuspawner.line.waiting_line import Hostnames, WaitingLine
from gpuspawner.messages import Message, OnForm, with_line_page
from gpuspawner.messages import line as told
from gpuspawner.preflight.decision import Reason, Refuse
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.reservations.place_in_line import KeptPlace, Wish
from gpuspawner.runtime import Runtime
from gpuspawner.start import connection, stored_options
from gpuspawner.start.asking_preflight import LOST_ROOM, may_wait, preflight_of
from gpuspawner.start.attempt import Attempt, TurnToStart
from gpuspawner.start.host import Host, log_name
from gpuspawner.start.policing import LIMIT, UNCOUNTED, Policing
from gpuspawner.start.refusal import LEFT, Refusal
from gpuspawner.start.source import Choice
from gpuspawner.traits import ENFORCE
from gpuspawner.troubles.facts import Happened

_LOOK_SECONDS = 2.0
"""How often the place is looked up."""
_REST_SECONDS = 1.0
"""How often one start joins the line at most."""
RELOAD_SECONDS = 60.0
"""For how long a page may be closed before its owner counts as away."""


class InLine(TurnToStart):
    """The wait of one start in a hub with a line.

    A start that is refused joins if the refusal may pass; once it is called, it is judged again,
    and may be refused again. So a start can wait several times, and keeps its place.

    Attributes:
        said: What was told last.
        is_on: Whether it waits now.
        has_waited: Whether it waits, or has waited, in this start.

    Args:
        begun: Is set when there is something to tell.
    """

    def __init__(
        self,
        rules: QueueRules,
        stored_places: StoredPlaces,
        waiting_line: WaitingLine,
        spawner: Host,
        runtime: Runtime,
        policing: Policing,
        server_state: ServerState,
        progress: Progress,
        begun: asyncio.Event,
    ) -> None:
        super().__init__(spawner, runtime, policing)
        self._server_state = server_state
        self._progress = progress
        self._begun = begun
        self._rules = rules
        self._stored_places = stored_places
        self._line = waiting_line
        self._choice: Choice | None = None
        self._address = ""  # of the page in line
        self._called: asyncio.Future[Hostnames] | None = None  # until it is admitted
        self._place: KeptPlace | None = None  # None: its owner doesn't want to wait
        self._denied: Refusal | None = None  # by policies, which may allow it later
        self._has_place = False  # since it has joined, or since its place was kept
        self._is_back = False  # with the same options as when its place was kept
        self._is_losing = False  # its place, since no node can hold it any more
        self._leaves = False
        self._asked_at = -inf
        self._pages = 0
        self._is_unseen = False  # nobody has opened a page since the hub started
        self._seen = time.monotonic()
        self.said = Message.of("")
        self.is_on = self.has_waited = False

    @property
    def _server(self) -> Server:
        return self._server_state.server

    @contextmanager
    def giving_up_kept_place(self) -> Iterator[None]:
        """As `TurnToStart`; the place stays if the same start may be admitted in a moment."""
        try:
            yield
        except (Exception, asyncio.CancelledError) as end:
            if not isinstance(end, Refusal) or end.slug not in PASSES:
                self._stored_places.pop(self._server)
                if isinstance(end, Exception):  # else, see `ServerState.cancelled`
                    self._server_state.wait_no_longer()
            raise
        self._stored_places.pop(self._server)
        self._called = None  # nobody can leave any more
        if self._leaves:  # too late for this start, but nobody waits for another one
            self._place = None
            self._server_state.wait_no_longer()

    async def through(self, asked: Choice, wish: Wish) -> Attempt:
        """As `TurnToStart.through`."""
        kept = self._stored_places.find(self._server)
        self._is_unseen = (
            wish is Wish.HERE
            and not self._pages
            and self._stored_places.is_of_earlier_hub(self._server)
            and not kubespawner.has_own_progress(self._spawner)
        )
        self._has_place = kept is not None
        if wish is not Wish.NOT:
            since = kept.since if kept else time.time()
            self._place = KeptPlace(since, wish, asked.options)
            if kept:  # else, the third gate could send it back again and again
                self._is_back = kept.options == asked.options
                asked = replace(asked, proposal=replace(asked.proposal, may_rise=False))
        return await jupyterhub.surviving(self._spawner, partial(self._admitted, asked))

    async def _admitted(self, asked: Choice) -> Attempt:
        choice = asked
        if self._is_unseen and self._place and await may_wait(self._spawner, asked):
            choice = await self._at_its_turn(asked, self._place) or asked
        while True:
            try:
                admitted = await self.admit(choice)
            except Refusal as refusal:
                if self._place is None or not await self._may_wait(asked, refusal):
                    if self._is_losing and refusal.slug == Reason.IMPOSSIBLE:
                        self._lose(refusal)
                    raise
                self._denied = refusal if refusal.slug in HELD_BACK else None
                if (called := await self._at_its_turn(asked, self._place)) is None:
                    raise
                choice = called
            else:
                if self._place is None:  # who was in line now starts without the wish to wait
                    self._server_state.wait_no_longer()
                return admitted

    async def _may_wait(self, asked: Choice, refusal: Refusal) -> bool:
        """Whether a refused start waits; who has a place keeps it for as long as in line."""
        if self._has_place:
            # If the nodes are gone on which it could have run, the line says for how long.
            is_gone = (self.has_waited or self._is_back) and not self._is_losing
            may = (is_gone and refusal.slug == Reason.IMPOSSIBLE) or lets_stay(refusal)
        else:
            may, decider = False, self._runtime.preflight.decider
            with deciding(self._spawner):
                may = lets_join(refusal, partial(decider.check, asked.proposal))
        return may and await may_wait(self._spawner, asked)

    def _lose(self, refusal: Refusal) -> NoReturn:
        """Raise a refusal that says that the place is lost."""
        said = told.place_lost(GONE_SECONDS, refusal.on_form.message)
        on_form = structs.replace(refusal.on_form, message=said)
        lost = Refusal(said, reason=refusal.slug, details=refusal.details, on_form=on_form)
        lost.grant = refusal.grant
        with failed_starts.explaining(self._spawner, self._runtime.failed_starts, str):
            raise lost from None

    @contextmanager
    def kept_if_taken(self) -> Iterator[None]:
        """As `TurnToStart.kept_if_taken`."""
        try:
            yield
        except Exception as end:
            again = LOST_ROOM | {UNCOUNTED} if self.has_waited else LOST_ROOM
            if self._place is None or not isinstance(end, Refusal) or end.slug not in again:
                self._server_state.wait_no_longer()
                raise
            self._stored_places.keep(self._server, self._place)
            self._runtime.run(resume(self._stored_places, self._server))
            why = "" if end.slug in LOST_ROOM else end.text
            raise Refusal(told.waits_again(why), reason=end.slug) from None

    @contextmanager
    def watched(self) -> Iterator[None]:
        """As `TurnToStart.watched`."""
        self._pages += 1
        self.see()
        try:
            yield
        finally:
            self._pages -= 1
            self.see()

    def see(self) -> None:
        """Note that the owner has looked at a page that shows this wait."""
        self._seen, self._is_unseen = time.monotonic(), False

    def leave(self) -> bool:
        """Leave the line: the start ends, unless it is admitted first. Return whether it waited."""
        if self._called is None or self._leaves:
            return False
        self._leaves = True
        if not self._called.done():
            self._called.set_exception(_left())
        return True

    async def instead(self) -> OnForm:
        """Return what the owner could have right now instead."""
        nothing = OnForm(self.said)
        if self._choice is None:
            return nothing
        decision = self._runtime.preflight.decider.check(self._choice.proposal)
        if not isinstance(decision, Refuse):  # it waits for a limit, or for others to take theirs
            decision = Refuse(decision.grant, Reason.BUSY)
        admission = connection.admission(self._spawner, self._runtime.dry_runs)
        try:
            _, on_form = await self._choice.explain(decision, admission)
        except Exception:  # one can leave the line even so
            name = log_name(self._spawner)
            self._spawner.log.exception("Finding alternatives for %s failed", name)
            return nothing
        return on_form

    async def _at_its_turn(self, asked: Choice, place: KeptPlace) -> Choice | None:
        """Wait for the turn of a choice, and return it; None if it can't wait."""
        ticket = None
        with deciding(self._spawner):
            proposal, ticket = await self._ticket(asked, place)
        if ticket is None:  # nobody can read its pod, say
            return None
        return asked.kept_off_nodes(await self._until_called(asked, proposal, ticket, place))

    async def _until_called(
        self, choice: Choice, proposal: Proposal, ticket: Ticket, place: KeptPlace
    ) -> Hostnames:
        """Wait for the turn of a server; return the nodes that its pod must be kept off.

        Raises:
            Refusal: The owner has left, or has been away for too long.
        """
        self._spawner.log.info("%s waits in line", log_name(self._spawner))
        self._address = line(self._spawner)  # later, the database may be away
        given = proposal.grant
        self._runtime.note(Happened.JOINED, self._spawner, given)
        # Nothing is granted yet: if the hub ends, its place has the options, and no other start.
        stored_options.restore_for_next_start(self._spawner)
        self._server_state.wait(place)
        self._choice, self._seen = choice, time.monotonic()
        self.is_on = self.has_waited = True
        self._begun.set()
        tag = language.language_tag()
        allows = partial(self._is_allowed, choice, tag) if self._denied else None
        try:
            with (
                failed_starts.explaining(self._spawner, self._runtime.failed_starts, str),
                waiting.uncounted(self._server),
                self._line.join(ticket, proposal, allows, is_away=self._is_unseen) as called,
            ):
                self._has_place = True
                self._stored_places.pop(self._server)
                self._called = called
                while not called.done():
                    self._check_wish()
                    self._tell(ticket, choice, place)
                    if place.wish is Wish.HERE:
                        self._mind(ticket)  # who is back may be called in this moment
                    await asyncio.wait({called}, timeout=_LOOK_SECONDS)
                called.result()
                # A node may have come back since the place was last told.
                has_room = self._runtime.preflight.reservations.is_promised(ticket.key)
                self._is_losing = self._is_losing and not has_room
                self._runtime.preflight.reservations.hold(ticket.key)
                await waiting.begin_now(self._spawner)
                self._check_wish()  # that may have taken long
        except BaseException:
            self._runtime.preflight.reservations.release(ticket.key)
            raise
        finally:
            self.is_on = False
        self._spawner.log.info("It is the turn of %s in line", log_name(self._spawner))
        waited = max(0.0, time.time() - place.since)
        self._runtime.note(Happened.CALLED, self._spawner, given, seconds=waited)
        return called.result()

    async def _ticket(self, choice: Choice, place: KeptPlace) -> tuple[Proposal, Ticket | None]:
        """Make the proposal that waits in line, and its ticket; None if nobody can read the pod.

        Raises:
            Refusal: There is no place for it.
        """
        self._check_places()
        await asyncio.sleep(self._rest())
        admission = connection.admission(self._spawner, self._runtime.dry_runs)
        proposal = await self._runtime.preflight.to_wait(choice.proposal, admission)
        person = people.person(self._spawner.user)
        lifetime = await self._policing.lifetime(choice)
        weight = self._rules.weight(person.groups)
        is_checked = preflight_of(self._spawner, choice) == ENFORCE
        ticket = self._line.ticket(
            proposal, person.id, place.since, weight, lifetime, is_checked=is_checked
        )
        self._check_places()  # others may have joined meanwhile
        return proposal, ticket

    def _rest(self) -> float:
        """Return for how many seconds to do nothing before a ticket is made.

        If the gates refused again and again whom the line calls at once, the hub would do nothing
        else.
        """
        joined, self._asked_at = self._asked_at, time.monotonic()
        return _REST_SECONDS if self._asked_at - joined < _REST_SECONDS else 0

    def _check_wish(self) -> None:
        """Let nobody wait or start who has left, or whom the hub has removed.

        Raises:
            Refusal: They have.
        """
        if self._leaves or jupyterhub.is_gone(self._spawner):
            raise _left()

    def _mind(self, ticket: Ticket) -> None:
        """Let a server start only while a page is open, if open pages are known."""
        if kubespawner.has_own_progress(self._spawner):  # it may never ask for ours
            return
        away = 0.0 if self._pages else time.monotonic() - self._seen
        if away > 60 * self._rules.minutes_away:
            raise Refusal(told.place_given_up(), reason="away-from-line")
        if self._is_unseen or away > RELOAD_SECONDS:
            self._line.held_back.owner_away(ticket)
        else:
            self._line.held_back.owner_back(ticket)

    def _check_places(self) -> None:
        if self._has_place:
            return
        own = self._line.places_of(self._spawner.user.id)
        if own >= self._rules.places_per_user:
            raise Refusal(told.waits_already(own), reason="in-line")
        if len(self._line) >= self._rules.places:
            raise Refusal(told.line_is_full(), reason="line-full")

    async def _is_allowed(self, choice: Choice, tag: str) -> bool:
        """Ask the policies again, and note their newest reason if they still deny the server."""
        language.set_locale(tag)  # the line asks in a task of its own
        if before := self._denied:
            ask = partial(self._policing.denial, choice, before)
            # Who was called while the database is away would hold a GPU for as long.
            if denied := await jupyterhub.surviving(self._spawner, ask):
                self._denied = denied
                return False
        return True

    def _tell(self, ticket: Ticket, choice: Choice, place: KeptPlace) -> None:
        denied, grant = self._denied, choice.proposal.grant
        profile = choice.display_names.get(choice.profile, "")
        at = self._line.standing(ticket)
        self._is_losing = at.lost_in is not None
        if denied and denied.slug == LIMIT and self._line.held_back.is_limited(ticket.key):
            said = told.waits_for_a_limit(denied.text, at.place, grant, profile)
        elif at.lost_in is not None:
            said = told.loses_place(at.lost_in, at.place, grant, profile)
        else:
            said = told.in_line(at.place, grant, profile, at.usual, at.idle, at.kept)
        if said != self.said:
            self.said = said
            self._progress.tell_instead(self._on_page(said, place.wish), 1)

    def _on_page(self, said: Message, wish: Wish) -> Message:
        """Add what only the hub's page of this start says."""
        if not self._address:
            return said
        is_needed = wish is Wish.HERE
        stay = told.stay_here(60 * self._rules.minutes_away) if is_needed else told.may_go()
        return with_line_page(said, stay, self._address)


def _left() -> Refusal:
    return Refusal(told.left_the_line(), reason=LEFT)
