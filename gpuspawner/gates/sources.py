"""What one server is chosen from, and the form that shows it."""

import asyncio
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gpuspawner import messages
from gpuspawner.compat import jupyterhub
from gpuspawner.gates import administrators_form
from gpuspawner.gates.accelerators import Accelerators
from gpuspawner.gates.administrators_form import PATIENCE, PLACE
from gpuspawner.launch.hub_pages import last_server
from gpuspawner.runtime import Runtime
from gpuspawner.start import hooks, request_options, submitted_form
from gpuspawner.start.host import Host, log_name, set_locale
from gpuspawner.start.policing import Policing
from gpuspawner.start.refusal import invalid, is_to_pass, reporting
from gpuspawner.start.source import Choice, ServerSource

if TYPE_CHECKING:
    from gpuspawner.profiles.profiles import Profiles

FORM_PATIENCE = 3.0
"""How long a page waits for the first list of a hub that has just started, in seconds."""


class Sources:
    """The accelerators or profiles of one spawner.

    An administrator's function may set profiles at any page or start, so which of the two count is
    only known at that moment.

    Attributes:
        knows_auth_state: Whether the ``auth_state_hook`` has run. The hub runs it before it draws a
            form, and for a start. But the spawner that gets the form and its questions may be
            another one: after a restart of the hub, or after a start that failed.
    """

    knows_auth_state = False

    def __init__(self, spawner: Host, runtime: Runtime, policing: Policing) -> None:
        self._spawner = spawner
        self._runtime = runtime
        self._policing = policing
        self._accelerators = Accelerators(spawner, runtime, policing)
        self._learning = asyncio.Lock()  # a hook may not stand to run twice at once

    @property
    def current(self) -> ServerSource:
        """The one that counts."""
        return self.accelerators or self._profiles

    @cached_property
    def _profiles(self) -> "Profiles":
        from gpuspawner.profiles.profiles import Profiles  # hubs with accelerators don't load it

        return Profiles(self._spawner, self._runtime, self._policing)

    @property
    def accelerators(self) -> Accelerators | None:
        """The accelerators on offer; None if users choose among KubeSpawner's profiles.

        Discovered accelerators aren't on offer beside the administrator's own form or options
        either, or if every server gets GPUs anyway.
        """
        spawner, running = self._spawner, self._runtime
        if self._listed or running.gpus_for_all:
            return None
        own = running.discovers and (
            administrators_form.is_set(spawner) or spawner.gpuspawner_has_own_options
        )
        theirs = own or (running.offers_nothing and hooks.reads_options(spawner))
        return None if theirs else self._accelerators

    @property
    def _listed(self) -> Any:
        """The ``profile_list``, which groups and functions of the administrator's may set."""
        return hooks.profiles_of(self._spawner)

    async def know_auth_state(self) -> None:
        """Run the ``auth_state_hook`` once: functions of profiles and policies may need it.

        Not while the server starts or runs: that has no form. If it fails or hangs, KubeSpawner's
        behaviour stays: the start runs it again. It may read the spawner's handler, which the hub
        sets for a page and a start only.

        Raises:
            HTTPError: The hook answers so, and would for the start.
        """
        try:
            async with asyncio.timeout(PATIENCE), self._learning:
                if not (self.knows_auth_state or self._spawner.active):
                    await jupyterhub.tell_auth_state(self._spawner)
        except Exception as error:
            if is_to_pass(error):
                raise
            told = "The auth_state_hook failed for the form of %s: %r"
            self._spawner.log.warning(told, log_name(self._spawner), error)

    async def resolve(self, raw: object) -> Choice:
        """Read options as sent, by the source that counts.

        Raises:
            HTTPError: An administrator's function forbids it.
            Refusal: They are too large, or as `ServerSource.resolve`.
        """
        if request_options.readable(raw) == request_options.TOO_MUCH:
            levels, values = request_options.MOST_LEVELS, request_options.MOST_VALUES
            raise invalid((messages.too_large(levels, values),))
        return await self.current.resolve(raw)

    async def offered(self) -> "Accelerators | Profiles | None":
        """Return the one that counts; None if there is nothing to choose from.

        A spawner that has drawn no page yet lacks the profiles of an administrator's function.
        """
        await self.know_auth_state()
        if not (self.accelerators or self._listed):
            await administrators_form.run(self._spawner)
        return self.accelerators or (self._profiles if self._listed else None)

    def default_form(self) -> Any:
        """Return the default form, which an administrator's function may return too."""
        form = self._spawner.gpuspawner_stock.options_form(PLACE)
        return form or (PLACE if self.accelerators or self._listed else "")

    async def fill(self, drawn: Any) -> Any:
        """Put our fields into their place in the form, if it has one and they aren't empty."""
        if not (isinstance(drawn, str) and PLACE in drawn):
            return drawn
        await self._runtime.view.first_list(FORM_PATIENCE)
        if drawn == PLACE and not (self._listed or self._runtime.may_have_choices):
            return ""
        set_locale(self._spawner)
        draft = submitted_form.current()
        asked_for = draft.source() if draft and draft.source else self.current
        with reporting(self._spawner):
            before = last_server(self._spawner, self._runtime.failed_starts)
            return drawn.replace(PLACE, await asked_for.form(before))
