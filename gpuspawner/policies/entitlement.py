"""What policies leave to a server's owner, as pages and answers show it."""

from functools import cached_property

import msgspec

from gpuspawner.kube.meta import Key
from gpuspawner.kube.objects import UNDECODABLE
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.types import Accelerator
from gpuspawner.policies.applying import Applying
from gpuspawner.policies.denial import PolicyDenial
from gpuspawner.policies.judging import Counts
from gpuspawner.policies.narrowing import narrow, shown_withheld
from gpuspawner.policies.policies import Policy
from gpuspawner.policies.remaining import Allowance, Remaining, policies_left, remaining, tightest
from gpuspawner.preflight.proposal import Proposal


class Entitlement(msgspec.Struct, frozen=True, dict=True):
    """What policies leave at one moment. A start judges anew.

    Attributes:
        key: The key of the server's own pod, which doesn't count.
    """

    applying: Applying
    key: Key

    @cached_property
    def offers(self) -> Offers:
        """What is on offer to the owner, whatever is in use."""
        runtime = self.applying.runtime
        return narrow(runtime.offers, self.applying.policies, runtime.sizes)

    @cached_property
    def offers_left(self) -> Offers:
        """What the owner may have now, beside the other servers."""
        applying, runtime = self.applying, self.applying.runtime
        left = policies_left(applying.policies, applying.standings(self.key))
        return narrow(runtime.offers, left, runtime.sizes)

    @property
    def withheld(self) -> list[tuple[Accelerator, Policy]]:
        """The accelerators that policies withhold from the owner, and yet show."""
        runtime = self.applying.runtime
        return list(shown_withheld(runtime.offers, self.applying.policies, runtime.sizes))

    @property
    def profiles(self) -> frozenset[str] | None:
        """The slugs of the profiles on offer to the owner; None for all."""
        left = [it.profiles for it in self.applying.policies if it.profiles is not None]
        return frozenset.intersection(*left) if left else None

    @property
    def allowance(self) -> Allowance | None:
        """What is left to the owner; None if no policy limits anything."""
        applying = self.applying
        if not (applying.counts_others or applying.lifetime):
            return None
        if applying.trouble():
            return Allowance((), applying.lifetime, is_counted=False)
        return Allowance(tightest(applying.standings(self.key)), applying.lifetime)

    def remaining(self, accelerator: Accelerator | None) -> Remaining:
        """Return how much is left of an accelerator (None: of servers without one)."""
        applying = self.applying
        if not applying.counts_others or applying.trouble():
            return Remaining()
        sizes = applying.runtime.sizes
        return remaining(
            self.offers, accelerator, applying.policies, applying.owner, self._counts, sizes
        )

    def denial(self, proposal: Proposal, profile: str) -> PolicyDenial | None:
        """Return what the policies deny of a pod right now; None if they allow it.

        *profile* is its slug, "" for none. A pod that can't be made yet is judged at the start.
        """
        if not self.applying.policies:
            return None
        try:
            charge = self.applying.charge(proposal)
        except UNDECODABLE:
            charge = None
        return self.applying.denial(proposal, profile, charge, self._counts)

    @cached_property
    def _counts(self) -> Counts:
        return self.applying.counts(self.key)
