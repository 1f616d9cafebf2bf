"""The page on which administrators ask how many servers can start now."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

import msgspec
from tornado import web

from gpuspawner.cluster.background import Turn
from gpuspawner.compat import people
from gpuspawner.compat.pages import add_handlers
from gpuspawner.form.addresses import CAPACITY, gpus, static
from gpuspawner.form.render import environment
from gpuspawner.gates import capacity
from gpuspawner.gates.what_if import NOBODY, Asking, UnusableError, imagined, resolved
from gpuspawner.language import gettext as _
from gpuspawner.messages.capacity import outcomes, remarks
from gpuspawner.messages.words import gpus as named
from gpuspawner.offers.grant import Grant
from gpuspawner.policies.owner import Owner
from gpuspawner.use import gpus_view
from gpuspawner.use.gpus_page import GpusHandler, sees_names
from gpuspawner.use.live_census import TURN_SECONDS
from gpuspawner.web.rate_limits import Questions

if TYPE_CHECKING:
    from gpuspawner.use.hub_use import HubUse

MOST = 1000
"""The most servers that the page judges: each takes part of a millisecond, or some."""
_LONGEST = 1000
_USUAL = "20"


class CapacityQuestion(msgspec.Struct, frozen=True):
    """What somebody asks, as sent.

    Attributes:
        offer: The accelerator or the profile, as in `asked_for`; "" for nothing yet.
        group: The servers are for its members; "" for users without a group.
    """

    offer: str = ""
    servers: str = _USUAL
    group: str = ""

    @classmethod
    def read(cls, given: Callable[[str, str], str]) -> "CapacityQuestion":
        """Read it from the arguments of a request."""
        offer, servers, group = (
            given(name, "").strip()[:_LONGEST] for name in cls.__struct_fields__
        )
        return cls(offer, servers or _USUAL, group)

    @property
    def count(self) -> int:
        """How many servers.

        Raises:
            UnusableError: It isn't a number that the page judges.
        """
        text = self.servers
        count = int(text) if text.isascii() and text.isdecimal() and len(text) < 7 else 0
        if not 1 <= count <= MOST:
            told = _("How many: a number from 1 to {most} is allowed.")
            raise UnusableError(told.format(most=MOST))
        return count

    def owner(self, roles: frozenset[str]) -> Owner:
        """Return somebody of the group, with its roles and the one that every user has."""
        return Owner(NOBODY.name, frozenset({self.group} - {""}), roles | {"user"})


class CapacityHandler(GpusHandler):
    """Serves the page."""

    _questions = Questions()

    async def figures(self) -> str:
        """As `FiguresHandler.figures`."""
        if not sees_names(self):
            raise web.HTTPError(
                403, _("Only people who are allowed to see all servers can open this page.")
            )
        question, problem = CapacityQuestion.read(self.get_query_argument), ""
        turn, running = Turn(TURN_SECONDS), self.use.running
        roles = people.group_roles(self.db, question.group) if question.group else frozenset()
        notes = [*gpus_view.said(len(running.preflight.line), running.view.health())]
        if len(running.preflight.line):
            notes.append(_("This page doesn't consider servers that wait in line."))
        if roles is None:
            notes.append(_("This hub knows no group “{group}”.").format(group=question.group))
        offered, rows, said = list[tuple[str, str]](), list[tuple[int, str]](), list[str]()
        try:
            asking = self._asking(question.owner(roles or frozenset()))
            await turn.end_if_long()
            offered = [it async for it in _offered(asking)]
            await turn.end_if_long()
            if question.offer:
                told = await capacity.capacity(asking, question.offer, question.count, turn)
                await asyncio.sleep(0)  # to forget what has been tried takes as long as a turn
                rows = [*outcomes(told.found)]
                said = [*remarks(told.found, told.queue, told.unjudged_quotas)]
        except UnusableError as error:
            problem = str(error)
        return (
            environment()
            .get_template("capacity.html")
            .render(
                question=question,
                offered=offered,
                most=MOST,
                notes=notes,
                outcomes=rows,
                remarks=said,
                problem=problem,
                page=gpus(self.hub.base_url),
                style=static(self.hub.base_url, "gpus.css"),
            )
        )

    def _asking(self, owner: Owner) -> Asking:
        hub, running = self.use.hub, self.use.running
        try:
            spawner = imagined(hub.spawner_class, hub.config, owner, self.db)
        except Exception as error:  # an administrator's class may need a user who exists
            self.log.exception("No spawner can be made for nobody in particular")
            raise UnusableError(f"{hub.spawner_class.__name__}: {error!r}") from error
        return Asking(spawner, running, running.dry_runs.for_page(self.current_user.name))


async def _offered(asking: Asking) -> AsyncIterator[tuple[str, str]]:
    """Yield what to choose from: the field's value, and its name.

    Raises:
        UnusableError: The profiles can't be listed.
    """
    if asking.spawner.gpuspawner_gates.sources.accelerators is None:
        # Only hubs with profiles load it.
        from gpuspawner.profiles.profile_alternatives import ProfileChoice

        choice = await resolved(asking, {})
        for profile in choice.listed.profiles if isinstance(choice, ProfileChoice) else ():
            yield profile.slug, profile.name
        return
    for accelerator in asking.runtime.offers.accelerators.values():
        for count in sorted(set(accelerator.counts)):
            chosen = {"accelerator": accelerator.key, "gpus": count}
            yield json.dumps(chosen), named(Grant(accelerator, count))
    yield json.dumps({"accelerator": None}), named(Grant())


def serve(hub: Any, use: "HubUse") -> None:
    """Add the page to a hub."""
    add_handlers(hub, [(CAPACITY, CapacityHandler, {"use": use})])
