"""The profiles before one person: their form, and what the gates ask about them."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from markupsafe import Markup
from tornado import web

from gpuspawner import gates, hub, messages
from gpuspawner.admission.rejection import Rejection
from gpuspawner.admission.slots import TooManyDryRunsError
from gpuspawner.cluster.view import ClusterView
from gpuspawner.messages import Message, OnForm
from gpuspawner.pods import Plain
from gpuspawner.policy import Grant
from gpuspawner.preflight import facts
from gpuspawner.preflight.admitted import AdmittedPreflight
from gpuspawner.preflight.ask import Ask
from gpuspawner.preflight.decision import Decision, Refuse, Room, Start, UnknownRules
from gpuspawner.profiles import page, standing
from gpuspawner.profiles.choosing import Chosen, choose, keep
from gpuspawner.profiles.reading import read
from gpuspawner.profiles.trial import Initialized, Listing, profile_list, try_out

MOST_INSTEAD = 3
# A refusal is to be made soon, and each try asks the API server once.
_MOST_TRIED = 12

DryRun = Callable[[str, Plain], Awaitable[Plain | Rejection | None]]
"""What admission makes of a pod of a namespace."""

_silent = logging.getLogger("gpuspawner.profiles.tried")
_silent.disabled = True


class Profiles:
    """The profiles as they are for one person at one moment.

    Args:
        spawner: Their spawner, before any profile is loaded into it.
        listed: Its profiles.
        view: The live view.
        preflight: Judges pods against it.

    Raises:
        AttributeError, KeyError, TypeError: They are not made as KubeSpawner documents it.
    """

    def __init__(
        self, spawner: Any, listed: Initialized, view: ClusterView, preflight: AdmittedPreflight
    ) -> None:
        self._spawner = spawner
        self._listed = listed
        self._view = view
        self._preflight = preflight
        self._profiles = read(listed)
        self._admission_is_away = False
        self._turns_are_taken = False

    @classmethod
    async def of(
        cls, spawner: Any, listing: Listing, view: ClusterView, preflight: AdmittedPreflight
    ) -> "Profiles":
        """The spawner's profiles.

        Raises:
            HTTPError: They cannot be had.
        """
        try:
            return cls(spawner, await profile_list(spawner, listing), view, preflight)
        except web.HTTPError:
            raise
        except Exception as error:
            spawner.log.exception("KubeSpawner.profile_list cannot be read, or its function fails")
            raise gates.misconfigured(spawner, f"KubeSpawner.profile_list: {error!r}") from error

    def choose(self, raw: object) -> Chosen:
        """What was chosen.

        Raises:
            Refusal: There is no such choice.
        """
        if (draft := hub.draft()) is not None:
            draft.options = raw
        try:
            chosen = choose(raw, self._profiles)
        except re.error as error:
            why = f"a validation_regex in KubeSpawner.profile_list: {error}"
            raise gates.misconfigured(self._spawner, why) from error
        if isinstance(chosen, Chosen):
            return chosen
        message = messages.correction(chosen)
        raise hub.refuse(self._spawner, message, reason="invalid-options", status=400)

    async def ask(self, chosen: Chosen) -> Ask:
        """What is asked of the cluster for a choice.

        Raises:
            HTTPError: The configuration, or an administrator's function, forbids it.
        """
        copied = self._spawner.copied()
        return await try_out(copied, self._listed, chosen, self._view.state.rules)

    def teller(self, chosen: Chosen) -> gates.Tell:
        """How a refusal of this choice is told."""
        return partial(self._tell, chosen)

    async def _tell(self, chosen: Chosen, decision: Refuse) -> tuple[Message, OnForm]:
        choices = standing.chosen_names(chosen)
        name = messages.profile_named(chosen.profile.name, *choices) if chosen.profile else ""
        message = messages.profile_refused(decision, name, await self._instead(chosen))
        return message, OnForm(message)

    async def _instead(self, chosen: Chosen) -> list[str]:
        """Names of what would start now, the nearest first; one of the same profile at most."""
        found: list[str] = []
        for number, other in enumerate(standing.others(chosen, self._profiles)):
            if number == _MOST_TRIED or len(found) == MOST_INSTEAD:
                break
            if other.choice and found:
                continue
            ask = self._admitting(await self._quietly(other.chosen), self._spawner.dry_run)
            if standing.fits_now(await self._preflight.examine(ask)):
                found.append(messages.profile_named(other.profile, *filter(None, [other.choice])))
        return found

    # The form

    async def form(self, draft: hub.Draft | None, saved: object) -> str:
        """KubeSpawner's form, told with how it stands.

        Args:
            draft: What this request has sent, if it has; it is chosen again.
            saved: What was chosen at the last start, perhaps from other profiles.
        """
        standings = [await standing.look_at(it, self._look) for it in self._profiles]
        told = page.with_states(self._listed, standings)
        raw = saved if draft is None else draft.options
        options: Mapping[str, Any] = keep(raw, self._profiles)
        again = Markup()
        if draft is not None:
            told = page.with_chosen(told, self._profiles, options)
            again = page.written_in(options, self._profiles)
        elif raw and options != raw:
            again = page.notice(messages.no_longer_offered())
        copied = self._spawner.copied()
        copied.user_options = dict(options)
        return f"{copied._render_options_form(told)}{again}"  # noqa: SLF001, no public way

    async def _quietly(self, chosen: Chosen) -> Ask:
        """As :meth:`ask`, for what nobody has asked for yet; its faults are nobody's news."""
        await asyncio.sleep(0)  # let others have the loop, where there are many profiles
        copied = self._spawner.copied()
        copied.log = _silent
        try:
            return await try_out(copied, self._listed, chosen, self._view.state.rules)
        except web.HTTPError:
            return Ask(copied.namespace, copied.pod_name, {"spec": None}, Grant())

    async def _look(self, chosen: Chosen) -> standing.Judged:
        ask = await self._quietly(chosen)
        if ask.grant.accelerator is None:
            return standing.Judged(ask, None)
        decision = await self._foretell(ask)
        return standing.Judged(ask, standing.availability(decision, self._room(ask)))

    async def _foretell(self, ask: Ask) -> Decision:
        """What can be told before anything is sent; admission is asked about a no.

        It often makes a yes of it: it tolerates the taints of GPU nodes for pods that ask for GPUs.
        """
        admitting = self._admitting(ask, self._spawner.dry_run_for_page)
        try:
            foretold = await self._preflight.foretell(admitting)
        except TooManyDryRunsError:
            return Start(ask.grant, (UnknownRules(("admission could not be asked in time",)),))
        # What a quota or a webhook says is about the person, and no state of the machines.
        about_person = isinstance(foretold, Refuse) and foretold.rejection is not None
        return self._preflight.check(ask) if about_person else foretold

    def _admitting(self, ask: Ask, dry_run: DryRun) -> Ask:
        return replace(ask, admit=partial(self._admit, dry_run, ask.namespace))

    async def _admit(self, dry_run: DryRun, namespace: str, pod: Plain) -> Plain | Rejection | None:
        """Ask admission until it once has no answer: no page is to wait so for each profile.

        Raises:
            TooManyDryRunsError: This once was no turn for it, now or before.
        """
        if self._admission_is_away:
            return None
        if self._turns_are_taken:
            raise TooManyDryRunsError
        try:
            admitted = await dry_run(namespace, pod)
        except TooManyDryRunsError:
            self._turns_are_taken = True
            raise
        self._admission_is_away = admitted is None and bool(pod.get("spec"))
        return admitted

    def _room(self, ask: Ask) -> Room | None:
        pod = getattr(ask.subject, "pod", None)
        if pod is None:
            return None
        nodes = facts.candidates(self._view.state, pod)
        # Without any, it is admission that opens the way to nodes; their figures are not known.
        return facts.gpus(nodes, ask.grant.accelerator, ask.grant.gpus) if nodes else None
