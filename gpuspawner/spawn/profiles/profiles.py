"""The source of servers if the administrator configures KubeSpawner's profiles."""

import asyncio
import inspect
import logging
import re
from asyncio import Future
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from jupyterhub.utils import maybe_future
from markupsafe import Markup
from tornado import web

from gpuspawner import messages
from gpuspawner.admission.dry_run import Admission
from gpuspawner.admission.dry_runs import TooManyDryRunsError
from gpuspawner.compat import kubespawner
from gpuspawner.compat.kubespawner import Stock
from gpuspawner.messages import Message, OnForm
from gpuspawner.preflight import facts
from gpuspawner.preflight.decision import Decision, Refuse, Start, UnknownRules
from gpuspawner.preflight.proposal import Proposal
from gpuspawner.runtime import Runtime
from gpuspawner.spawn import drafts, stored_options
from gpuspawner.spawn.connection import IfConnected
from gpuspawner.spawn.host import Host
from gpuspawner.spawn.profiles import availability, page
from gpuspawner.spawn.profiles.choosing import Chosen, choose, keep
from gpuspawner.spawn.profiles.giving_up import GivingUp
from gpuspawner.spawn.profiles.profile_list import Complete, Profile, read
from gpuspawner.spawn.profiles.trial import try_out, unknown
from gpuspawner.spawn.refusal import invalid, misconfigured
from gpuspawner.spawn.source import Choice, Source, Stored

MOST_INSTEAD = 3
# The refusal shouldn't take long, and each try asks the API server once.
_MOST_TRIED = 12

_silent = logging.getLogger("gpuspawner.profiles.tried")
_silent.disabled = True


@dataclass(frozen=True, slots=True)
class Listed:
    """The profiles at one moment, as KubeSpawner uses them and as this package does."""

    complete: Complete
    profiles: tuple[Profile, ...]


@dataclass(frozen=True, kw_only=True)
class ProfileChoice(Choice):
    """A profile and the choices within it, which KubeSpawner itself loads into the pod."""

    chosen: Chosen
    source: "Profiles" = field(repr=False)
    listed: Listed = field(repr=False)

    async def explain(self, refusal: Refuse, admission: Admission) -> tuple[Message, OnForm]:
        """As `Choice.explain`."""
        chosen = self.chosen
        choices = availability.chosen_names(chosen)
        name = messages.profile_named(chosen.profile.name, *choices) if chosen.profile else ""
        instead = await self.source.instead(self, GivingUp(admission))
        message = messages.profile_refused(refusal, name, instead)
        return message, OnForm(message)


class Profiles(Source):
    """The administrator's profiles, offered to one server's owner.

    KubeSpawner loads a profile into the spawner. If the start fails and the hub redraws the form,
    it shows the spawner as it was before.
    """

    def __init__(self, spawner: Host, stock: Stock, runtime: Runtime) -> None:
        self._spawner = spawner
        self._stock = stock
        self._view = runtime.view
        self._preflight = runtime.preflight
        self._dry_runs = runtime.dry_runs
        self._unloaded: Host | None = None

    def begin(self) -> None:
        """As `Source.begin`."""
        self._unloaded = self._spawner.copied()

    def end(self, started: Future[object]) -> None:
        """As `Source.end`; the hub redraws the form only after a start that failed."""
        if not started.cancelled() and started.exception() is None:
            self._unloaded = None

    @property
    def reads_form(self) -> Callable[..., Any]:
        """As `Source.reads_form`."""
        reads: Callable[..., Any] = self._stock.options_from_form()
        return reads

    def stored(self) -> Stored:
        """As `Source.stored`: all stored options; KubeSpawner ignores the unknown ones."""
        return Stored(stored_options.stored(self._spawner))

    async def resolve(self, raw: object) -> ProfileChoice:
        """As `Source.resolve`.

        Raises:
            HTTPError: An administrator's function forbids it.
            Refusal: As `Source.resolve`.
        """
        listed = await self._list(self._spawner)
        if (draft := drafts.current()) is not None:
            draft.options = raw
        chosen = self._choose(raw, listed)
        proposal = await try_out(
            self._spawner.copied(), listed.complete, chosen, self._view.state.rules
        )
        options = dict(chosen.options)
        return ProfileChoice(proposal, options, chosen=chosen, source=self, listed=listed)

    async def instead(self, choice: ProfileChoice, admission: Admission) -> list[str]:
        """Name alternatives that fit now, nearest first; at most one of the same profile."""
        found: list[str] = []
        others = availability.others(choice.chosen, choice.listed.profiles)
        for number, other in enumerate(others):
            if number == _MOST_TRIED or len(found) == MOST_INSTEAD:
                break
            if other.chosen.profile == choice.chosen.profile and found:
                continue
            proposal = await self._try_quietly(self._spawner, choice.listed, other.chosen)
            if availability.fits_now(await self._preflight.examine(proposal, admission)):
                found.append(messages.profile_named(*filter(None, other.names)))
        return found

    async def form(self) -> str:
        """As `Source.form`: KubeSpawner's form, with the availability of each profile."""
        spawner = self._unloaded or self._spawner
        listed = await self._list(spawner)
        dry_runs = self._dry_runs.for_page(spawner.user.name)
        admission = GivingUp(IfConnected(spawner, dry_runs))

        async def look(chosen: Chosen) -> availability.Judged:
            return await self._look(spawner, listed, chosen, admission)

        rows = [await availability.look_at(profile, look) for profile in listed.profiles]
        shown = page.with_states(listed.complete, rows)
        draft, stored = drafts.current(), self._spawner.user_options
        raw = stored if draft is None else draft.options
        kept = keep(raw, listed.profiles)
        again = Markup()
        if draft is not None:
            shown = page.with_chosen(shown, listed.profiles, kept)
            again = page.written_in(kept, listed.profiles)
        elif raw and kept != raw:
            again = page.notice(messages.no_longer_offered())
        copied = spawner.copied()
        copied.user_options = dict(kept)
        return f"{kubespawner.draw_profiles(copied, shown)}{again}"

    async def _list(self, spawner: Host) -> Listed:
        """Return the current profiles.

        Raises:
            HTTPError: An administrator's function forbids them.
            Refusal: They can't be read, or the function fails.
        """
        try:
            given = kubespawner.as_list(spawner.profile_list)
            listed = given(spawner) if callable(given) else given
            if inspect.isawaitable(listed):
                await asyncio.sleep(0)  # see `at_once`: our code does this before it waits
            complete = kubespawner.complete_profiles(spawner, await maybe_future(listed))
            return Listed(complete, read(complete))
        except web.HTTPError:
            raise
        except Exception as error:
            spawner.log.exception("Can't read KubeSpawner.profile_list, or its function fails")
            raise misconfigured(f"KubeSpawner.profile_list: {error!r}") from error

    def _choose(self, raw: object, listed: Listed) -> Chosen:
        try:
            chosen = choose(raw, listed.profiles)
        except re.error as error:
            why = f"a validation_regex in KubeSpawner.profile_list: {error}"
            raise misconfigured(why) from error
        if isinstance(chosen, Chosen):
            return chosen
        raise invalid(chosen)

    async def _try_quietly(self, spawner: Host, listed: Listed, chosen: Chosen) -> Proposal:
        """Propose the pod of a choice that nobody has made yet, without logging its errors."""
        await asyncio.sleep(0)  # let other tasks run, as there may be many profiles
        copied = spawner.copied()
        copied.log = _silent
        try:
            return await try_out(copied, listed.complete, chosen, self._view.state.rules)
        except web.HTTPError:
            return unknown(copied)

    async def _look(
        self, spawner: Host, listed: Listed, chosen: Chosen, admission: Admission
    ) -> availability.Judged:
        proposal = await self._try_quietly(spawner, listed, chosen)
        if proposal.grant.accelerator is None:
            return availability.Judged(proposal, None)
        decision = await self._foretell(proposal, admission)
        grant, nodes = proposal.grant, facts.candidates(self._view.state, proposal.decoded)
        # Without candidates, only admission can make nodes usable; their numbers are unknown.
        room = facts.gpus(nodes, grant.accelerator, grant.gpus) if nodes else None
        row = availability.availability(decision, room)
        return availability.Judged(proposal, row)

    async def _foretell(self, proposal: Proposal, admission: Admission) -> Decision:
        """Decide before a form is sent; admission may turn a no into a yes, by tolerations."""
        try:
            foretold = await self._preflight.foretell(proposal, admission)
        except TooManyDryRunsError:
            why = ("admission could not be asked in time",)
            return Start(proposal.grant, (UnknownRules(why),))
        # A quota's or webhook's rejection concerns the user, not the state of the nodes.
        about_person = isinstance(foretold, Refuse) and foretold.rejection is not None
        return self._preflight.check(proposal) if about_person else foretold
