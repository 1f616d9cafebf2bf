"""Judges one server by the policies, at each gate."""

import asyncio
import inspect
from datetime import UTC, datetime
from functools import partial

from tornado import web

from gpuspawner import messages
from gpuspawner.cluster.health import Live
from gpuspawner.compat import people
from gpuspawner.compat.database import is_fault
from gpuspawner.gates.host import Host
from gpuspawner.gates.refusal import Refusal, misconfigured
from gpuspawner.gates.source import Choice
from gpuspawner.kube.meta import Key
from gpuspawner.kube.objects import UNDECODABLE
from gpuspawner.policies.applying import Applying
from gpuspawner.policies.charges import Charge
from gpuspawner.policies.denial import OverLimit, PolicyDenial, Uncounted
from gpuspawner.policies.entitlement import Entitlement
from gpuspawner.policies.granted import Granted, ends_after
from gpuspawner.policies.owner import Owner
from gpuspawner.policies.policies import Policies
from gpuspawner.preflight.preflight import START_PATIENCE
from gpuspawner.preflight.proposal import Proposal
from gpuspawner.runtime import Runtime

_PAGE_PATIENCE = 3.0
"""How long a page waits for the first list of pods, or for contact to come back, in seconds."""
LIMIT = "limit"
"""Why a server is refused that a policy may allow later."""
UNCOUNTED = "uncounted"
"""Why a server is refused while nothing can be counted."""
RETRY_SECONDS = 10
"""How soon a client should ask again if nothing can be counted."""


class Policing:
    """The gates' question whether an owner may have a server.

    Nothing is judged or counted if the administrator has set no policies.
    """

    def __init__(self, spawner: Host, runtime: Runtime, server: str | None = None) -> None:
        self._spawner = spawner
        self._runtime = runtime
        self._server = spawner.name if server is None else server

    def of(self, server: str) -> "Policing":
        """Return the same for another server of the owner, which needn't exist yet."""
        return Policing(self._spawner, self._runtime, server)

    @property
    def has_policies(self) -> bool:
        """Whether the administrator has set policies, whomever they are for."""
        return bool(self._runtime.policies)

    async def examine(self, choice: Choice) -> Granted | None:
        """Return what the pod will say of its grant; take nothing yet.

        Raises:
            Refusal: A policy denies the choice, or what it limits can't be counted.
        """
        applying = await self.applying(START_PATIENCE)
        if not applying:
            return None
        return self._judge(choice, applying, _readable(applying, choice.proposal))[0]

    async def take(self, choice: Choice) -> Granted | None:
        """As `examine`, and count the server from now on, in the tick in which it was judged."""
        applying = await self.applying(START_PATIENCE)
        if applying is None:
            return None
        return self._take(choice, applying, _readable(applying, choice.proposal))

    async def take_sent(self, choice: Choice) -> Granted | None:
        """As `take` for the pod that is really sent, so somebody has to be able to read it."""
        applying = await self.applying(START_PATIENCE)
        if applying is None:
            return None
        try:
            charge = applying.charge(choice.proposal)
        except UNDECODABLE as error:
            raise misconfigured(f"nobody can tell what the pod takes: {error}") from error
        return self._take(choice, applying, charge)

    async def allows(self, choice: Choice) -> bool:
        """Whether no limit is in the way of a choice any more; another refusal needs no wait."""
        try:
            await self.examine(choice)
        except Refusal as refusal:
            return refusal.slug != LIMIT
        return True

    async def lifetime(self, choice: Choice) -> int | None:
        """Return after how many seconds the choice's pod ends; None if it doesn't.

        Raises:
            Refusal: The administrator's function fails.
        """
        proposal, applying = choice.proposal, await self.applying(START_PATIENCE)
        given = applying.lifetime_of(_readable(applying, proposal)) if applying else None
        return ends_after(proposal.pod, given)

    async def entitlement(self, key: Key | None = None) -> Entitlement:
        """Return what the policies leave to the owner right now.

        *key* is that of the server's pod, by default the one that the spawner makes.

        Raises:
            Refusal: The administrator's function fails.
        """
        applying = await self.applying(_PAGE_PATIENCE) or self._without_policies()
        return Entitlement(applying, key or self.key)

    @property
    def key(self) -> Key:
        """The key of the server's pod; that of no pod if the server doesn't exist yet."""
        namespace, name = self._spawner.namespace, self._spawner.pod_name
        return namespace, name if self._server == self._spawner.name else f"{name}-"

    async def applying(self, patience: float) -> Applying | None:
        """Return the policies that apply now; None if the administrator has set none at all.

        If a limit counts servers that can't be counted right now, wait a moment until they can.

        Raises:
            Refusal: The administrator's function fails.
        """
        if not self.has_policies:
            return None
        policies = await self._policies()
        found, pods = self._applying(policies), self._runtime.accounts.following
        if found.counts_others and not isinstance(pods.health(), Live):
            await pods.live(patience)
            return self._applying(policies)
        return found

    def _applying(self, policies: Policies) -> Applying:
        user, runtime = self._spawner.user, self._runtime
        person = people.person(user)
        owner = Owner(person.name, person.groups, person.roles, self._server)
        return Applying(
            owner,
            runtime.accounts.owners(user.db, person),
            policies.applying(owner, datetime.now(UTC)),
            runtime,
            partial(runtime.accounts.memberships.ids, user.db),
        )

    def _without_policies(self) -> Applying:
        owner = Owner(self._spawner.user.name, server=self._server)
        return Applying(owner, frozenset(), (), self._runtime, lambda *_: frozenset())

    async def _policies(self) -> Policies:
        given = self._runtime.policies
        if isinstance(given, Policies):
            return given
        try:
            written = given(self._spawner)
            if inspect.isawaitable(written):
                await asyncio.sleep(0)  # see `at_once`: our code does this before it waits
                written = await written
            return self._runtime.read_policies(written)
        except Exception as error:
            if isinstance(error, web.HTTPError | Refusal) or is_fault(error):
                raise
            self._spawner.log.exception("The function GPUSpawner.policies failed")
            raise misconfigured(f"GPUSpawner.policies: {error!r}") from error

    def _take(self, choice: Choice, applying: Applying, charge: Charge | None) -> Granted:
        granted, counted = self._judge(choice, applying, charge)
        if counted is not None:
            self._runtime.accounts.pledges.take(choice.proposal.key, counted)
        return granted

    def _judge(
        self, choice: Choice, applying: Applying, charge: Charge | None
    ) -> tuple[Granted, Charge | None]:
        proposal = choice.proposal
        counts = applying.counts(proposal.key)
        if denial := applying.denial(proposal, choice.profile, charge, counts):
            raise self._refusal(denial)
        granted = applying.granted(proposal, charge)
        if charge is None:
            return granted, None
        return granted, charge.by(granted)

    def _refusal(self, denial: PolicyDenial) -> Refusal:
        message = messages.policy_denied(denial, self._runtime.display_names)
        match denial:
            case Uncounted(why):
                refusal = Refusal(message, reason=UNCOUNTED, status=503, details=why)
                refusal.headers = {"Retry-After": str(RETRY_SECONDS)}
                return refusal
            case OverLimit() if denial.may_pass:
                return Refusal(message, reason=LIMIT, details=denial.policy.name)
            case _:
                return Refusal(message, reason="policy", status=403, details=denial.policy.name)


def _readable(applying: Applying, proposal: Proposal) -> Charge | None:
    """Return what a pod takes; None if KubeSpawner can't make it yet: the last gate decides."""
    try:
        return applying.charge(proposal)
    except UNDECODABLE:
        return None
