"""The administrator's policies: what a hub has once of them, and those that apply to one server."""

import logging
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from gpuspawner.cluster.client import ConfigurationFactory
from gpuspawner.kube.meta import Key
from gpuspawner.kube.objects import UNDECODABLE, strict_convert
from gpuspawner.kube.servers import ServerPod
from gpuspawner.offers.offers import Offers
from gpuspawner.policies.accounts import Accounts
from gpuspawner.policies.allowed_offers import Sizes
from gpuspawner.policies.charges import Charge, Meter, Who
from gpuspawner.policies.limits import Counts, Members, PolicyDenial, Uncounted, Wanted, withheld
from gpuspawner.policies.owner import Owner
from gpuspawner.policies.policies import Per, Policies, Policy, lifetime, when_idle
from gpuspawner.policies.policies_config import read_policies, read_weights
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.reservations.granted import Granted, ends_after
from gpuspawner.runtime import Runtime
from gpuspawner.start.host import Host
from gpuspawner.start.policing import Policing
from gpuspawner.traits.settings import Settings

log = logging.getLogger(__name__)


class HubPolicies:
    """The policies of one hub.

    Args:
        runtime: The hub's own.
        given: As `configured_policies` returns them.
        configured: The offers that policies may name.
        load: As the hub reads the cluster.
        policing: Makes what judges a spawner's servers.

    Attributes:
        accounts: What servers take.
        sizes: How amounts on offer become what policies count.
    """

    def __init__(
        self,
        runtime: Runtime,
        given: Policies | Callable[..., Any],
        settings: Settings,
        configured: Offers,
        load: ConfigurationFactory,
        policing: Callable[[Host, Runtime, "HubPolicies"], Policing],
    ) -> None:
        self.given = given
        self.sizes = Sizes(
            read_weights(settings.gpu_weights), settings.memory_requested, settings.cpu_requested
        )
        self._gpu_use = settings.gpu_use
        self._has_told = False
        self._runtime = runtime
        self._configured = configured
        self._policing = policing
        namespace = "" if settings.enable_user_namespaces else settings.namespace
        contact, reservations = runtime.view.contact, runtime.preflight.reservations
        self.accounts = Accounts(load, namespace, self.meter, contact, reservations)

    @property
    def offers(self) -> Offers:
        """What is on offer at this moment."""
        return self._runtime.offers

    def policing(self, spawner: Host) -> Policing:
        """Return what judges a spawner's servers."""
        return self._policing(spawner, self._runtime, self)

    def meter(self) -> Meter:
        """What reads from pods what they take of limits."""
        accelerators = tuple(self.offers.accelerators.values())
        return Meter(self._runtime.view.state.rules, accelerators, self.sizes.weights)

    def read(self, written: object) -> Policies:
        """Read policies that the administrator's function has returned.

        Raises:
            OfferError: They aren't usable.
        """
        found = read_policies(written, self.sizes.weights, self._configured)
        mistake = next(found.unmeasured(self._gpu_use), "")
        if mistake and not self._has_told:  # once, and not at each form
            self._has_told = True
            log.warning("%s", mistake)
        return found


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
        return next(counts.over_limits(charge), None)

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
        return counts.left_to_members(charge, servers)

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
