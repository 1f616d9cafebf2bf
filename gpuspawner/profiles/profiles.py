"""The source of servers if the administrator configures KubeSpawner's profiles."""

import re
from asyncio import Future
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakSet

from jupyterhub.utils import maybe_future
from markupsafe import Markup
from tornado import web

from gpuspawner import messages
from gpuspawner.cluster.background import Turn
from gpuspawner.compat import jupyterhub, kubespawner
from gpuspawner.form.addresses import live
from gpuspawner.form.render import render_refusal, render_usage
from gpuspawner.form.view_builder import above_the_form
from gpuspawner.language import language_tag
from gpuspawner.preflight.dry_runs import Admission
from gpuspawner.preflight.learned_hooks import Later
from gpuspawner.profiles import page
from gpuspawner.profiles.page_availability import Looking, known
from gpuspawner.profiles.pod_of_choice import try_out
from gpuspawner.profiles.profile_alternatives import GivingUp, ProfileChoice
from gpuspawner.profiles.profile_list import Listed
from gpuspawner.profiles.profile_options import Chosen, Errors, choose, keep
from gpuspawner.profiles.sharing import Page, Rows
from gpuspawner.runtime import Runtime
from gpuspawner.start import hooks, stored_options, submitted_form
from gpuspawner.start.connection import IfConnected
from gpuspawner.start.host import Host, within_start_timeout
from gpuspawner.start.policing import Entitlement, Policing
from gpuspawner.start.refusal import invalid, misconfigured
from gpuspawner.start.request_options import PROFILE
from gpuspawner.start.source import ServerSource, Stored
from gpuspawner.traits.trait_types import setting

# How long a page waits for dry runs, in seconds. States that are unknown then come by refresh.
PATIENCE = 1.0

_PAGE_TURN_SECONDS = 0.001
"""The longest that a page may hold the hub's event loop; a whole class may open theirs at once."""

_REFUSAL_TURN_SECONDS = 0.02
"""The same for a refusal, whose alternatives are looked for before the hub answers 202."""


class Profiles(ServerSource):
    """The administrator's profiles, offered to one server's owner.

    KubeSpawner loads a profile into the spawner. If the start fails and the hub redraws the form,
    it shows the spawner as it was before, and so do forms that were open when the start began.
    """

    def __init__(self, spawner: Host, runtime: Runtime, policing: Policing) -> None:
        self._spawner = spawner
        self.runtime = runtime
        self.policing = policing
        self._unloaded: Host | None = None
        self._others: WeakSet[Profiles] = WeakSet()

    def of(self, server: str) -> "Profiles":
        """Return the same for another server of the owner, which needn't exist yet."""
        policing = self.policing.of(server)
        other = Profiles(self._spawner, self.runtime, policing)
        other._unloaded = self._unloaded
        if server != self._spawner.name:
            other._unloaded = shown = _at_rest(self._shown)
            _, shown.pod_name = policing.key  # this spawner's pod isn't the other server's
        self._others.add(other)
        return other

    def begin(self) -> None:
        """As `ServerSource.begin`."""
        self._unloaded = before = _at_rest(self._spawner)
        for other in self._others:
            other.keep_showing(before)

    def keep_showing(self, before: Host) -> None:
        """Go on showing the spawner as it was before a start, even after it has succeeded."""
        self._unloaded = self._unloaded or before

    def end(self, started: Future[object]) -> None:
        """As `ServerSource.end`; the hub redraws the form only after a start that failed.

        If there may be other servers, this one goes on to answer for those that don't exist yet.
        """
        failed = started.cancelled() or started.exception() is not None
        if self._unloaded is not None:
            self._unloaded.handler = None  # as the hub does; the request may be large
        if not failed and not self._answers_for_others:
            self._unloaded = None

    @property
    def _answers_for_others(self) -> bool:
        """Whether it is asked about other servers; a page may have to find the profiles first."""
        before = self._unloaded
        is_known = before is not None and bool(before.profile_list)
        return is_known and jupyterhub.may_have_named_servers(self._spawner)

    @property
    def _shown(self) -> Host:
        """The spawner that a page shows: without the profile that a start has loaded."""
        return self._unloaded or self._spawner

    @property
    def reads_form(self) -> Callable[..., Any]:
        """As `ServerSource.reads_form`."""
        reads: Callable[..., Any] = self._spawner.gpuspawner_stock.options_from_form()
        return reads

    @property
    def later(self) -> Later:
        """As `ServerSource.later`."""
        return self._later(self._spawner)

    def _later(self, spawner: Host) -> Later:
        placements = self.runtime.preflight.learned.placements
        return hooks.later(spawner, placements, self.policing.server)

    async def requested(self) -> Stored:
        """As `ServerSource.requested`: a body means what it means to this version of the hub."""
        if stored_options.were_replaced():
            return Stored(self._spawner.user_options)
        return await self.stored()

    async def stored(self) -> Stored:
        """As `ServerSource.stored`: all stored options; KubeSpawner ignores the unknown ones."""
        return Stored(stored_options.stored(self._spawner))

    async def resolve(self, raw: object) -> ProfileChoice:
        """As `ServerSource.resolve`.

        Raises:
            HTTPError: An administrator's function forbids it.
            Refusal: As `ServerSource.resolve`.
        """
        listed = await self._list(self._spawner)
        if (draft := submitted_form.current()) is not None:
            draft.options = raw
        offered = await self._offered(self._spawner, listed)
        chosen = self._choose(raw, offered, listed)
        if not isinstance(chosen, Chosen):
            raise invalid(await self._errors_of_owner(chosen, raw, listed))
        started = hooks.as_started(self._spawner)
        before, copied = _early_traits(started), started.gpuspawner_copy()
        rules = self.runtime.view.state.rules
        proposal = await try_out(copied, listed.complete, chosen, rules)
        proposal = proposal.expecting(self.later, chosen.settled)
        options = dict(chosen.options)
        return ProfileChoice(
            proposal,
            options,
            traits=dict(_early_traits(copied).items() - before.items()),
            chosen=chosen,
            listed=offered,
            looking=self.looking,
        )

    async def looking(self, listed: Listed) -> Looking:
        """Find out what other choices would get, for a refusal."""
        entitlement = await self.policing.entitlement()
        turn = Turn(_REFUSAL_TURN_SECONDS)
        later = self._later(self._spawner)
        return Looking(self._spawner, listed, self.runtime, entitlement, later, turn)

    async def _rows(self, looking: Looking, admission: Admission) -> tuple[Listed, Rows]:
        """Return the profiles that are shown to the owner, and the availability of each."""
        spawner, listed = self._shown, looking.listed
        asked = GivingUp(IfConnected(spawner, admission), PATIENCE)
        rows = tuple([await looking.look_at(it, asked) for it in listed.profiles])
        kept = [number for number, row in enumerate(rows) if not row.is_hidden]
        if not kept or len(kept) == len(rows):  # without any, the reasons are better than nothing
            return listed, rows
        shown = known(self.runtime).lists.read(spawner, [listed.complete[it] for it in kept])
        return shown, tuple(rows[it] for it in kept)

    async def _shared_rows(
        self, listed: Listed, entitlement: Entitlement, admission: Admission
    ) -> tuple[Listed, Rows]:
        """As `_rows`, from what a page of an owner whose pods are alike has found out, if any."""
        kept = known(self.runtime).rows
        asking = Page(self._shown, listed, self.runtime, entitlement)
        version = asking.version()
        found = kept.find(version, asking.alone, asking.shared) if asking.is_general() else None
        if found is not None:
            return listed, found
        looking = self.look_at(listed, entitlement)
        shown, rows = await self._rows(looking, admission)
        now = Page(self._shown, listed, self.runtime, entitlement)
        is_same = now.alone == asking.alone and asking.version() == version
        if is_same and shown is listed and looking.is_general and asking.is_general():
            kept.keep(version, asking.alone if looking.depends_on_labels else asking.shared, rows)
        return shown, rows

    @property
    def are_computed(self) -> bool:
        """Whether an administrator's function returns the profiles."""
        return callable(self._shown.profile_list)

    async def listed(self) -> Listed:
        """Return the profiles that an open form shows.

        Raises:
            HTTPError, Refusal: As `resolve`.
        """
        return await self._list(self._shown)

    async def states(self) -> list[dict[str, Any]]:
        """Return the availability of each profile and choice as plain data, for an open form.

        Raises:
            HTTPError, Refusal: As `resolve`.
        """
        admission = self.runtime.dry_runs.for_form(self._shown.user.name)
        entitlement, listed = await self.policing.entitlement(), await self.listed()
        shown, rows = await self._shared_rows(listed, entitlement, admission)
        return page.states(shown.complete, rows)

    def look_at(self, listed: Listed, entitlement: Entitlement) -> Looking:
        """Begin to find out what choices would get, for a page."""
        turn = Turn(_PAGE_TURN_SECONDS)
        later = self._later(self._shown)
        return Looking(self._shown, listed, self.runtime, entitlement, later, turn)

    async def states_of(self, looking: Looking) -> list[dict[str, Any]]:
        """Return the same as `states`, for profiles that `listed` has returned."""
        admission = self.runtime.dry_runs.for_form(self._shown.user.name)
        shown, rows = await self._rows(looking, admission)
        return page.states(shown.complete, rows)

    async def form(self, before: Sequence[str] = ()) -> str:
        """As `ServerSource.form`: KubeSpawner's form, with the availability of each profile."""
        spawner = self._shown
        admission = self.runtime.dry_runs.for_page(spawner.user.name)
        entitlement, listed = await self.policing.entitlement(), await self.listed()
        listed, rows = await self._shared_rows(listed, entitlement, admission)
        draft, stored = submitted_form.current(), self._spawner.user_options
        raw = stored if draft is None else draft.options
        kept = keep(raw, listed.profiles, to_correct=draft is not None)
        again = Markup()
        if draft is not None:
            again = page.written_in(kept, listed.profiles)
        elif raw and kept != raw:
            again = page.notice(messages.no_longer_offered())
        served = live(self._spawner, "profiles.js")
        told = draft.refused if draft is not None else None
        above = render_refusal(told, served, kept) if told else ""
        lines = [*entitlement.no_gpus, *entitlement.lines]
        left = above_the_form(spawner, before, lines, entitlement.servers, entitlement.withheld)
        if left and (left.before or left.lines):
            above += render_usage(left, served)
        is_quiet = all(it.is_quiet for it in rows)
        below = page.live(served) if served and not is_quiet else ""
        drawn = self._drawn(spawner, listed, rows, kept, {} if draft is None else kept)
        return f"{above}{drawn}{again}{below}"

    def _drawn(
        self,
        spawner: Host,
        listed: Listed,
        rows: Rows,
        options: Mapping[str, object],
        chosen: Mapping[str, object],
    ) -> str:
        """Return KubeSpawner's form for these options; *chosen* become the defaults."""

        def draw() -> str:
            copied = spawner.gpuspawner_copy()
            copied.user_options = dict(options)
            shown = page.with_states(listed.complete, rows)
            return copied.gpuspawner_stock.draw_profiles(
                page.with_chosen(shown, listed.profiles, chosen)
            )

        template = kubespawner.form_template(spawner)
        if template is None:
            return draw()
        shows = (listed, rows, options, chosen, language_tag(), template)
        return known(self.runtime).drawn.form(shows, draw)

    async def _list(self, spawner: Host) -> Listed:
        """Return the current profiles.

        Raises:
            HTTPError: An administrator's function forbids them.
            Exception: It fails, and tells people why by a ``jupyterhub_message``.
            Refusal: They can't be read, or the function fails.
        """
        try:
            given = kubespawner.as_list(hooks.profiles_of(spawner))
            listed = given(spawner) if callable(given) else given
            async with within_start_timeout(spawner):
                return known(self.runtime).lists.read(spawner, await maybe_future(listed))
        except web.HTTPError:
            raise
        except Exception as error:
            if hasattr(error, "jupyterhub_message"):  # the function's own words
                raise
            spawner.log.exception("Can't read KubeSpawner.profile_list, or its function fails")
            raise misconfigured(f"KubeSpawner.profile_list: {error!r}") from error

    async def _offered(self, spawner: Host, listed: Listed) -> Listed:
        """Return the profiles that policies leave to the owner."""
        if not listed.profiles or (left := (await self.policing.entitlement()).profiles) is None:
            return listed
        complete = [it for it in listed.complete if it["slug"] in left]
        return known(self.runtime).lists.read(spawner, complete)

    async def _errors_of_owner(self, errors: Errors, raw: object, listed: Listed) -> Errors:
        """Return errors in options; that in a profile names those that the form shows."""
        entitlement = await self.policing.entitlement()
        if not entitlement.is_limited or errors[0].field != PROFILE:
            return errors
        admission = self.runtime.dry_runs.for_form(self._shown.user.name)
        shown, _ = await self._shared_rows(listed, entitlement, admission)
        found = choose(raw, shown.profiles)
        return errors if isinstance(found, Chosen) else found

    def _choose(self, raw: object, offered: Listed, listed: Listed) -> Chosen | Errors:
        """Read options by the profiles on offer; then by all, of which policies deny the others."""
        try:
            if offered is listed:
                return choose(raw, listed.profiles)
            chosen = choose(raw, offered.profiles) if offered.profiles else ()
            if isinstance(chosen, Chosen):
                # KubeSpawner's own default may be a profile that isn't on offer.
                return Chosen(chosen.profile, {**chosen.options, PROFILE: chosen.slug})
            others = choose(raw, listed.profiles)
        except re.error as error:
            why = f"a validation_regex in KubeSpawner.profile_list: {error}"
            raise misconfigured(why) from error
        return others if isinstance(others, Chosen) else chosen or others


def _at_rest(spawner: Host) -> Host:
    """Return a copy of a spawner that isn't starting: code that runs before a start still will."""
    copied = spawner.gpuspawner_copy()
    jupyterhub.forget_beginning(copied)
    return copied


def _early_traits(spawner: Host) -> dict[str, object]:
    """Return the traits of `Choice.traits`."""
    timeouts = "start_timeout", "scheduling_timeout", "preparing_timeout", "http_timeout"
    return {it: setting(spawner, it) for it in (*timeouts, "preflight")}
