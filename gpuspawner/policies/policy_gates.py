"""Judges one server by the policies, at each gate."""

import inspect
from collections.abc import Container, Mapping
from datetime import UTC, datetime
from functools import partial

from gpuspawner.cluster.health import Live
from gpuspawner.compat import people
from gpuspawner.kube.meta import Key
from gpuspawner.kube.objects import UNDECODABLE
from gpuspawner.messages.policies import policy_denied
from gpuspawner.policies.charges import Charge
from gpuspawner.policies.entitlement import EntitlementByPolicies
from gpuspawner.policies.hub_policies import Applying, HubPolicies
from gpuspawner.policies.limits import OverLimit, PolicyDenial, Uncounted
from gpuspawner.policies.owner import Owner
from gpuspawner.policies.policies import Policies
from gpuspawner.preflight.preflight import START_PATIENCE
from gpuspawner.reservations.granted import Granted, ends_after
from gpuspawner.runtime import Runtime
from gpuspawner.start.host import Host, within_start_timeout
from gpuspawner.start.policing import LIMIT, UNCOUNTED, Policing
from gpuspawner.start.refusal import Refusal, is_to_pass, misconfigured
from gpuspawner.start.source import Choice

_PAGE_PATIENCE = 3.0
"""How long a page waits for the first list of pods, or for contact to come back, in seconds."""
RETRY_SECONDS = 10
"""How soon a client should ask again if nothing can be counted."""


class ByPolicies(Policing):
    """As `Policing`, in a hub with policies."""

    has_policies = True

    def __init__(self, spawner: Host, runtime: Runtime, hub: HubPolicies) -> None:
        super().__init__(spawner, runtime)
        self._hub = hub

    async def examine(self, choice: Choice) -> Granted | None:
        """As `Policing.examine`."""
        applying = await self.applying(START_PATIENCE)
        return self._judge(choice, applying, applying.readable_charge(choice.proposal))

    async def take(self, choice: Choice) -> Granted | None:
        """As `Policing.take`."""
        applying = await self.applying(START_PATIENCE)
        return self._take(choice, applying, applying.readable_charge(choice.proposal))

    async def take_sent(self, choice: Choice) -> Granted | None:
        """As `Policing.take_sent`."""
        applying = await self.applying(START_PATIENCE)
        try:
            charge = applying.charge(choice.proposal)
        except UNDECODABLE as error:
            raise misconfigured(f"nobody can tell what the pod takes: {error}") from error
        return self._take(choice, applying, charge)

    async def denial(self, choice: Choice, before: Refusal) -> Refusal | None:
        """As `Policing.denial`."""
        try:
            await self.examine(choice)
        except Refusal as refusal:
            if refusal.slug == UNCOUNTED:
                return before
            return refusal if refusal.slug == before.slug else None
        return None

    async def applies(self, names: Container[str]) -> bool:
        """As `Policing.applies`."""
        applying = await self.applying(0)
        return any(it.name in names for it in applying.policies)

    async def lifetime(self, choice: Choice) -> int | None:
        """As `Policing.lifetime`."""
        proposal, applying = choice.proposal, await self.applying(START_PATIENCE)
        given = applying.lifetime_of(applying.readable_charge(proposal))
        return ends_after(proposal.pod, given)

    async def entitlement(self, key: Key | None = None) -> EntitlementByPolicies:
        """As `Policing.entitlement`."""
        applying = await self.applying(_PAGE_PATIENCE)
        return EntitlementByPolicies(self._runtime, applying, key or self.key)

    async def applying(self, patience: float) -> Applying:
        """Return the policies that apply now.

        If a limit counts servers that can't be counted right now, wait a moment until they can.

        Raises:
            Refusal: The administrator's function fails.
        """
        policies = await self._policies()
        found, pods = self._applying(policies), self._hub.accounts.following
        if found.counts_others and not isinstance(pods.health(), Live):
            await pods.live(patience)
            return self._applying(policies)
        return found

    def _applying(self, policies: Policies) -> Applying:
        user, accounts = self._spawner.user, self._hub.accounts
        person = people.person(user)
        owner = Owner(person.name, person.groups, person.roles, self.server)
        return Applying(
            owner,
            accounts.owners(user.db, person),
            policies.applying(owner, datetime.now(UTC)),
            self._hub,
            partial(accounts.memberships.ids, user.db),
        )

    async def _policies(self) -> Policies:
        given = self._hub.given
        if isinstance(given, Policies):
            return given
        try:
            written = given(self._spawner)
            if inspect.isawaitable(written):
                async with within_start_timeout(self._spawner):
                    written = await written
            return self._hub.read(written)
        except Exception as error:
            if is_to_pass(error):
                raise
            self._spawner.log.exception("The function GPUSpawner.policies failed")
            raise misconfigured(f"GPUSpawner.policies: {error!r}") from error

    def _take(self, choice: Choice, applying: Applying, charge: Charge | None) -> Granted:
        granted = self._judge(choice, applying, charge)
        if charge is not None:
            self._hub.accounts.reservations.charge(choice.proposal.key, charge.by(granted))
        return granted

    def _judge(self, choice: Choice, applying: Applying, charge: Charge | None) -> Granted:
        proposal = choice.proposal
        counts = applying.counts(proposal.key)
        if denial := applying.denial(proposal, choice.profile, charge, counts):
            raise _refusal(denial, {**self._runtime.display_names, **choice.display_names})
        return applying.granted(proposal, charge)


def _refusal(denial: PolicyDenial, names: Mapping[str, str]) -> Refusal:
    message = policy_denied(denial, names)
    match denial:
        case Uncounted(why):
            refusal = Refusal(message, reason=UNCOUNTED, status=503, details=why)
            refusal.headers = {"Retry-After": str(RETRY_SECONDS)}
            return refusal
        case OverLimit() if denial.may_pass:
            return Refusal(message, reason=LIMIT, details=denial.policy.name)
        case _:
            return Refusal(message, reason="policy", status=403, details=denial.policy.name)
