"""What policies leave to a server's owner, as pages and answers show it."""

from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from typing import Self

from msgspec.structs import replace

from gpuspawner.kube.meta import Key
from gpuspawner.messages.policies import allowance_lines, no_gpu_lines
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.types import Accelerator
from gpuspawner.policies.allowed_offers import common, leaves_no_gpu, narrow, shown_withheld
from gpuspawner.policies.hub_policies import Applying
from gpuspawner.policies.limits import (
    Counts,
    OverLimit,
    PolicyDenial,
    Standing,
    Uncounted,
    Withheld,
)
from gpuspawner.policies.policies import Policy
from gpuspawner.policies.remaining import Allowance, OneMore, Remaining, policies_left, tightest
from gpuspawner.preflight.availability import Availability, State
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.runtime import Runtime
from gpuspawner.start.policing import Entitlement


class EntitlementByPolicies(Entitlement):
    """As `Entitlement`, of an owner to whom these policies apply.

    Args:
        key: The key of the server's own pod, which doesn't count.
    """

    def __init__(self, runtime: Runtime, applying: Applying, key: Key) -> None:
        super().__init__(runtime)
        self._applying = applying
        self._hub = applying.hub
        self._policies = applying.policies
        self._key = key
        self.is_limited = bool(applying.policies)

    @cached_property
    def offers(self) -> Offers:
        """As `Entitlement.offers`."""
        return self._narrow(self._policies)

    @cached_property
    def offers_left(self) -> Offers:
        """As `Entitlement.offers_left`."""
        return self._narrow(policies_left(self._policies, self._counts.standings()))

    def _narrow(self, policies: Iterable[Policy]) -> Offers:
        return narrow(self._hub.offers, policies, self._hub.sizes)

    @cached_property
    def no_gpus(self) -> Sequence[str]:
        """As `Entitlement.no_gpus`."""
        if not self._leave_no_gpu(self._policies):
            return ()
        return no_gpu_lines(it for it in self._policies if self._leave_no_gpu((it,)))

    def _leave_no_gpu(self, policies: Sequence[Policy]) -> bool:
        if not self._runtime.discovers:
            return not self._narrow(policies).accelerators
        return leaves_no_gpu(self._hub.offers, policies, self._hub.sizes)

    @property
    def withheld(self) -> Sequence[tuple[Accelerator, str]]:
        """As `Entitlement.withheld`."""
        found = shown_withheld(self._hub.offers, self._policies, self._hub.sizes)
        return [(accelerator, policy.explanation) for accelerator, policy in found]

    @property
    def profiles(self) -> frozenset[str] | None:
        """As `Entitlement.profiles`."""
        return common(it.profiles for it in self._policies)

    @property
    def lines(self) -> Sequence[str]:
        """As `Entitlement.lines`."""
        allowance = self.allowance
        return allowance_lines(allowance, self._runtime.display_names) if allowance else ()

    @property
    def servers(self) -> Sequence[str]:
        """As `Entitlement.servers`."""
        return self.allowance.servers if self.allowance else ()

    @cached_property
    def allowance(self) -> Allowance | None:
        """What is left to the owner of what is offered; None if no policy limits anything."""
        applying = self._applying
        lifetime = None if self.no_gpus else applying.lifetime
        if not (applying.counts_others or lifetime):
            return None
        if applying.trouble():
            return Allowance((), lifetime, is_counted=False)
        offered = filter(self._is_offered, self._counts.standings())
        return Allowance(tightest(offered), lifetime)

    def _is_offered(self, standing: Standing) -> bool:
        """Whether the owner can have any of what a limit counts."""
        measure = standing.limit.measure
        if measure.of in self._hub.offers.accelerators:
            return measure.of in self.offers.accelerators
        return standing.limit.most > 0 and not (measure.counts_gpus and self.no_gpus)

    @property
    def version(self) -> object:
        """As `Entitlement.version`."""
        hub = self._hub
        return hub.accounts.usage.version, bool(self._applying.trouble()), hub.offers

    @property
    def used(self) -> Hashable:
        """As `Entitlement.used`."""
        if self._applying.trouble():
            return self._policies, None
        return self._policies, tuple(self._applying.counts(self._key).standings())

    def renewed(self) -> Self:
        """As `Entitlement.renewed`; this one keeps what it has counted."""
        return type(self)(self._runtime, self._applying, self._key)

    def limited(self, row: Availability) -> Availability:
        """As `Entitlement.limited`."""
        if not self.is_limited:
            return row
        return within(self._remaining(row), row)

    def _remaining(self, row: Availability) -> Remaining:
        """Return how much is left of an accelerator, or of servers without one."""
        sizes = self._hub.sizes
        one = OneMore(self.offers, row.accelerator, self._counts, sizes, row.requests)
        if denial := one.never():
            return Remaining(0, denial)
        if not self._applying.counts_others or self._applying.trouble():
            return Remaining()
        return one.remaining()

    def denied(self, proposal: Proposal, profile: str) -> Availability | None:
        """As `Entitlement.denied`."""
        if not self.is_limited:
            return None
        charge = self._applying.readable_charge(proposal)
        denial = self._applying.denial(proposal, profile, charge, self._counts)
        return denied(proposal.grant.accelerator, denial) if denial else None

    @cached_property
    def _counts(self) -> Counts:
        return self._applying.counts(self._key)


def denied(accelerator: Accelerator | None, denial: PolicyDenial) -> Availability:
    """Return the availability of what a policy denies to a user, wherever there is room."""
    if isinstance(denial, Uncounted):
        return Availability(accelerator, State.UNKNOWN)
    return Availability(accelerator, _state(denial), denial=denial)


def within(remaining: Remaining, row: Availability) -> Availability:
    """Return the availability to a user to whom limits leave only so much.

    If no node can hold a server with it anyway, this remains what the user has to know.
    """
    found = row if row.left == remaining.gpus else replace(row, left=remaining.gpus)
    if remaining.reached is None or row.state in (State.AWAY, State.ABSENT):
        return found
    return replace(found, state=_state(remaining.reached), denial=remaining.reached)


def _state(denial: OverLimit | Withheld) -> State:
    may_pass = isinstance(denial, OverLimit) and denial.may_pass
    return State.LIMITED if may_pass else State.WITHHELD
