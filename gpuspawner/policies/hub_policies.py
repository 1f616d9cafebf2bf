"""The administrator's policies, and what servers take of them: what a hub has once of both."""

import logging
from collections.abc import Callable
from typing import Any

from gpuspawner.cluster.client import ConfigurationFactory
from gpuspawner.offers.offers import Offers
from gpuspawner.policies.accounts import Accounts
from gpuspawner.policies.allowed_offers import Sizes
from gpuspawner.policies.charges import Meter
from gpuspawner.policies.policies import Policies
from gpuspawner.policies.policies_config import read_policies, read_weights
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
