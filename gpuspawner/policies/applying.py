"""The policies that apply to one server at one moment: what its pod takes, and what they deny."""

import msgspec
from msgspec.structs import replace

from gpuspawner.kube.meta import Key
from gpuspawner.kube.objects import UNDECODABLE, strict_convert
from gpuspawner.kube.servers import ServerPod
from gpuspawner.policies.charges import Charge, Who
from gpuspawner.policies.denial import (
    PolicyDenial,
    Uncounted,
    Wanted,
    left_to_members,
    over_limits,
    withheld,
)
from gpuspawner.policies.hub_policies import HubPolicies
from gpuspawner.policies.limits import Counts, Members
from gpuspawner.policies.owner import Owner
from gpuspawner.policies.policies import Per, Policy, lifetime, when_idle
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.reservations.granted import Granted, ends_after


class Applying(msgspec.Struct, frozen=True):
    """The policies that apply to a server at this moment.

    Attributes:
        owners: The owner, as in `Charge.owners`.
        members: Finds the members of a group at this moment.
    """

    owner: Owner
    owners: frozenset[Who]
    policies: tuple[Policy, ...]
    hub: HubPolicies
    members: Members

    @property
    def counts_others(self) -> bool:
        """Whether a limit counts other servers."""
        return any(it.counts_others for it in self.policies)

    @property
    def lifetime(self) -> int | None:
        """Seconds after which a server with a GPU ends; None for no end."""
        return lifetime(self.policies)

    def lifetime_of(self, charge: Charge | None) -> int | None:
        """Seconds after which a server that takes this ends: `lifetime`, if it has a GPU."""
        return self.lifetime if charge and charge.has_gpus else None

    def trouble(self) -> str:
        """Why other servers can't be counted, if a limit counts them; "" if they can."""
        return self.hub.accounts.trouble() if self.counts_others else ""

    def counts(self, key: Key) -> Counts:
        """Return the servers that count beside the one of this key."""
        usage = self.hub.accounts.usage
        return Counts(self.policies, self.owner, self.owners, usage, key, self.members)

    def charge(self, proposal: Proposal) -> Charge:
        """Return what a pod takes.

        Raises:
            UNDECODABLE: Nobody can tell.
        """
        accelerator = proposal.grant.accelerator
        pod = strict_convert(proposal.pod, ServerPod)
        key = accelerator.key if accelerator else ""
        server = Charge(self.owners, self.owner.server, accelerator=key)
        return self.hub.meter().charge(pod, server)

    def readable_charge(self, proposal: Proposal) -> Charge | None:
        """As `charge`; None if KubeSpawner can't make the pod yet: the last gate decides."""
        try:
            return self.charge(proposal)
        except UNDECODABLE:
            return None

    def denial(
        self, proposal: Proposal, profile: str, charge: Charge | None, counts: Counts
    ) -> PolicyDenial | None:
        """Return what the policies deny of a pod; None if they allow it.

        *profile* is its slug, "" for none. Without a charge, only what it has of the offers counts.
        """
        for found in withheld(self.policies, _wanted(proposal, profile, charge)):
            return found
        if charge is None:
            return None
        limits = (limit for it in self.policies for limit in it.limits)
        counts_others = any(it.counts_others and charge.of(it.measure) > 0 for it in limits)
        if counts_others and (why := self.hub.accounts.trouble()):
            return Uncounted(why)
        return next(over_limits(counts, charge), None)

    def left_to_members(
        self, proposal: Proposal, profile: str, servers: int
    ) -> tuple[int, PolicyDenial | None]:
        """Return how many such servers others like the owner can have, one each.

        The second is what denies the next one; None if all are allowed.

        Raises:
            UNDECODABLE: As `charge`.
        """
        nobody = replace(self, owners=frozenset())  # the next member has no other server
        charge, counts = nobody.charge(proposal), nobody.counts(("", ""))
        if denial := self.denial(proposal, profile, charge, counts):
            return 0, denial
        return left_to_members(counts, charge, servers)

    def granted(self, proposal: Proposal, charge: Charge | None) -> Granted:
        """Return what the pod says of its grant."""
        accelerator = proposal.grant.accelerator
        shared = (it for it in self.policies if any(limit.per is Per.GROUP for limit in it.limits))
        groups = {group for policy in shared for group in policy.charged_groups(self.owner)}
        given = self.lifetime_of(charge)
        return Granted(
            accelerator.key if accelerator else "",
            tuple(it.name for it in self.policies),
            tuple(sorted(groups)),
            ends_after(proposal.pod, given) if given else None,
            idle=when_idle(self.policies) if charge and charge.has_gpus else None,
        )


def _wanted(proposal: Proposal, profile: str, charge: Charge | None) -> Wanted:
    """Return what a server has of the offers; a GPU that isn't an offer has no other name."""
    grant, device = proposal.grant, charge.device if charge else None
    return Wanted(
        grant.accelerator.key if grant.accelerator else device,
        grant.image.key if grant.image else None,
        profile or None,
    )
