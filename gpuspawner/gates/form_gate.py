"""The first gate, for a form or a query: the hub shows its refusal on the form."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from jupyterhub.utils import maybe_future
from markupsafe import Markup
from msgspec.structs import replace

from gpuspawner import messages
from gpuspawner.form.alternative_button import INSTEAD, KEPT, pressed
from gpuspawner.gates import administrators_form, wait_option
from gpuspawner.gates.sources import FORM_PATIENCE, Sources
from gpuspawner.offers.user_options import from_form
from gpuspawner.preflight.decision import Reason, Refuse
from gpuspawner.reservations.place_in_line import OPTION, Wish
from gpuspawner.runtime import Runtime
from gpuspawner.start import connection, request_options, submitted_form
from gpuspawner.start.asking_preflight import (
    decide,
    may_wait,
    offers_line,
    preflight_of,
    refusal_of,
)
from gpuspawner.start.hooks import as_started
from gpuspawner.start.host import Host, set_locale
from gpuspawner.start.policing import LIMIT, Policing
from gpuspawner.start.refusal import Refusal, about, reporting
from gpuspawner.start.source import Choice
from gpuspawner.traits import ENFORCE


class FormGate:
    """Refuses options that can't start. It takes nothing: the second gate decides anew."""

    def __init__(
        self, spawner: Host, runtime: Runtime, policing: Policing, sources: Sources
    ) -> None:
        self._spawner = spawner
        self._stock = spawner.gpuspawner_stock
        self._runtime = runtime
        self._policing = policing
        self._sources = sources

    def check(self, form_data: Mapping[str, list[object]]) -> Awaitable[object]:
        """Read a form; if its options can't start, refuse them on the form."""
        set_locale(self._spawner)
        return self._read(pressed(form_data), self._stock.kubespawner.run_options_from_form)

    def check_query(self, query_data: dict[str, list[str]]) -> Awaitable[object]:
        """Read ``/hub/spawn?opt-gpus=2``; if its options can't start, refuse them on the form.

        Raises:
            NoOptionsError: It has none.
        """
        set_locale(self._spawner)
        query = request_options.option_names(query_data)
        if kept := query.pop(KEPT, None):
            source = self._sources.current
            submitted_form.keep(source.reads_form(pressed({INSTEAD: [*kept]})), lambda: source)
        if not query:
            with reporting(self._spawner):
                raise NoOptionsError
        return self._read(query, self._stock.kubespawner.options_from_query)

    def _read(self, fields: Mapping[str, Any], read: Callable[[Any], object]) -> Awaitable[object]:
        """Keep the fields for the form that the hub may draw again, and read them."""
        wish = wait_option.pressed(fields)
        given: Any = wait_option.without(fields, self._runtime.line)
        submitted_form.keep(from_form(given), lambda: self._sources.current)
        return self._check(partial(read, given), wish=wish)

    async def _check(self, read: Callable[[], object], wish: Wish) -> object:
        """Refuse options that can't start, or return them in the form that the hub stores."""
        with reporting(self._spawner):
            await self._sources.know_auth_state()
            await administrators_form.run(self._spawner)
            raw = await maybe_future(read())
            await self._runtime.view.first_list(FORM_PATIENCE)
            refuse_if_started(self._spawner)
            # An administrator's function may name none: then the stored ones count. The start finds
            # them itself, and says what of them isn't offered any more.
            options = (await self._sources.current.stored()).options if raw is None else raw
            choice = await self._sources.resolve(wait_option.without(options, self._runtime.line))
            refuse_if_started(self._spawner)
            wish = wish if self._runtime.line is not None else Wish.NOT
            with about(choice.proposal.grant):
                await self._ask_policies(choice, wish)
                if preflight_of(started := as_started(self._spawner), choice) == ENFORCE:
                    await self._examine(started, choice, wish)
            claim_start(self._spawner)
            if wish is not Wish.NOT:
                return {**choice.options, OPTION: wish.value}
            return None if raw is None else choice.options

    async def _ask_policies(self, choice: Choice, wish: Wish) -> None:
        """Refuse what policies deny; who wants to wait in line may wait for a limit."""
        try:
            await self._policing.examine(choice)
        except Refusal as refusal:
            if refusal.slug == LIMIT:
                if wish is not Wish.NOT and await may_wait(self._spawner, choice):
                    refuse_if_started(self._spawner)
                    return
                grant, line = choice.proposal.grant, self._runtime.preflight.line
                ahead = line.ahead_of(choice.proposal)
                # Admission has a say in what is offered instead, too.
                busy = Refuse(grant, Reason.BUSY, in_line=ahead, after_admission=True)
                admission = connection.admission(self._spawner, self._runtime.dry_runs)
                shown = (await refusal_of(self._spawner, choice, busy, admission)).on_form
                refusal.on_form = replace(shown, message=refusal.on_form.message, errors=())
            refuse_if_started(self._spawner)
            raise

    async def _examine(self, started: Host, choice: Choice, wish: Wish) -> None:
        """Refuse a choice that can't start, unless another request has started the server.

        Who wants to wait in line is only refused what there is no line for.
        """
        admission = connection.admission(self._spawner, self._runtime.dry_runs)
        try:
            await decide(started, choice, self._runtime.preflight.examine, admission)
        except Refusal as refusal:
            can_wait = partial(may_wait, self._spawner, choice)
            goes_on = wish is not Wish.NOT and await offers_line(refusal, can_wait)
            refuse_if_started(self._spawner)
            if not goes_on:
                raise


class NoOptionsError(Refusal):
    """Lets the hub show the form, and say nothing above it: nobody has asked for a server.

    The page of a refusal has the hub's token in its address, and people open it again.
    """

    def __init__(self) -> None:
        super().__init__(messages.Message("", Markup()), reason="", status=200)
        self.is_reported = True


# Only one request at a time starts a server.
#
# Some ticks pass between the gate's answer and the moment the hub marks the server as starting. If
# another request starts it meanwhile, the hub finds out too late and answers HTTP 500.

_passed: WeakValueDictionary[tuple[str, str], asyncio.Task[Any]] = WeakValueDictionary()
"""Requests whose form or query has passed the gate, by user and server, until they end."""


class AlreadyStartedError(Refusal):
    """Refuses only this request: the current start goes on, and the hub counts no failure."""

    def __init__(self) -> None:
        super().__init__(messages.already_started(), reason="already-started", status=400)
        self.is_reported = True  # nothing about the server has been refused


def refuse_if_started(spawner: Host) -> None:
    """Check that no other request has started the server, or is about to.

    Raises:
        AlreadyStartedError: One has.
    """
    current = spawner.user.spawners.get(spawner.name)
    other = _passed.get((spawner.user.name, spawner.name))
    another_starts_it = other is not None and not other.done() and other is not _request()
    if another_starts_it or (current is not None and current.active):
        raise AlreadyStartedError


def claim_start(spawner: Host) -> None:
    """Let this request start the server, and no other until this one ends.

    Raises:
        AlreadyStartedError: As `refuse_if_started`.
    """
    refuse_if_started(spawner)
    if (request := _request()) is not None:
        _passed[spawner.user.name, spawner.name] = request


def _request() -> asyncio.Task[Any] | None:
    draft = submitted_form.current()
    return draft.request if draft is not None else None
