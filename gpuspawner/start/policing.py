"""Whether an owner may have a server, and what is on offer to them.

Without policies, everybody may have all that is on offer: that is what is here. `policies` has the
classes that judge, and a hub without policies doesn't load them.
"""

# ruff: noqa: ARG002, without policies, nothing depends on who asks for what

from collections.abc import Container, Hashable, Sequence
from copy import copy
from functools import cached_property
from typing import Self

from gpuspawner.kube.meta import Key
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.types import Accelerator
from gpuspawner.preflight.availability import Availability
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.reservations.granted import Granted, ends_after
from gpuspawner.runtime import Runtime
from gpuspawner.start.host import Host
from gpuspawner.start.refusal import Refusal
from gpuspawner.start.source import Choice

LIMIT = "limit"
"""Why a server is refused that a policy may allow later."""
UNCOUNTED = "uncounted"
"""Why a server is refused while nothing can be counted."""


class Entitlement:
    """What is on offer to the owner of a server at one moment. A start judges anew.

    Attributes:
        is_limited: Whether a policy applies.
    """

    is_limited = False

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @cached_property
    def offers(self) -> Offers:
        """What is on offer to the owner, whatever is in use."""
        return self._runtime.offers

    @property
    def offers_left(self) -> Offers:
        """What the owner may have now, beside the other servers."""
        return self.offers

    @property
    def profiles(self) -> frozenset[str] | None:
        """The slugs of the profiles on offer; None for all."""
        return None

    @property
    def no_gpus(self) -> Sequence[str]:
        """Says so, and why, if policies leave no GPU, nor any that the hub could discover."""
        return ()

    @property
    def withheld(self) -> Sequence[tuple[Accelerator, str]]:
        """The accelerators that policies withhold and yet show, and why, in their own words."""
        return ()

    @property
    def lines(self) -> Sequence[str]:
        """What is left to the owner, as plain text, one sentence for each limit."""
        return ()

    @property
    def servers(self) -> Sequence[str]:
        """The names of the owner's servers that take part of a limit."""
        return ()

    @property
    def version(self) -> object:
        """What changes whenever limits may leave something else."""
        return None

    @property
    def used(self) -> Hashable:
        """What the limits leave, equal for owners to whom the same is left."""
        return None

    def renewed(self) -> Self:
        """Return what is left by the same policies now."""
        return self

    def limited(self, row: Availability) -> Availability:
        """Return the availability of an accelerator to the owner, from that to everybody."""
        return row

    def denied(self, proposal: Proposal, profile: str) -> Availability | None:
        """Return the availability of a pod that policies deny right now; None if they allow it.

        *profile* is its slug, "" for none. A pod that can't be made yet is judged at the start.
        """
        return None


class Policing:
    """The gates' question whether an owner may have a server.

    Attributes:
        server: The server's name, which may be another one than the spawner's.
    """

    has_policies = False
    """Whether the administrator has set policies, whomever they are for."""

    def __init__(self, spawner: Host, runtime: Runtime) -> None:
        self._spawner = spawner
        self._runtime = runtime
        self.server = spawner.name

    def of(self, server: str) -> Self:
        """Return the same for another server of the owner, which needn't exist yet."""
        other = copy(self)
        other.server = server
        return other

    @property
    def key(self) -> Key:
        """The key of the server's pod; that of no pod if the server doesn't exist yet."""
        namespace, name = self._spawner.namespace, self._spawner.pod_name
        return namespace, name if self.server == self._spawner.name else f"{name}-"

    async def examine(self, choice: Choice) -> Granted | None:
        """Return what the pod will say of its grant; take nothing yet. None without policies.

        Raises:
            Refusal: A policy denies the choice, or what it limits can't be counted.
        """
        return None

    async def take(self, choice: Choice) -> Granted | None:
        """As `examine`, and count the server from now on, in the tick in which it was judged."""
        return None

    async def take_sent(self, choice: Choice) -> Granted | None:
        """As `take` for the pod that is really sent, so somebody has to be able to read it."""
        return None

    async def denial(self, choice: Choice, before: Refusal) -> Refusal | None:
        """Return why a choice has to wait on that was refused for a reason that may pass, or None.

        *before* is that refusal, by `LIMIT` or `UNCOUNTED`. Another one needs no wait.
        """
        return None

    async def applies(self, names: Container[str]) -> bool:
        """Whether one of these policies applies to the owner.

        Raises:
            Refusal: The administrator's function fails.
        """
        return False

    async def lifetime(self, choice: Choice) -> int | None:
        """Return after how many seconds the choice's pod ends; None if it doesn't.

        Raises:
            Refusal: The administrator's function fails.
        """
        return ends_after(choice.proposal.pod, None)

    async def entitlement(self, key: Key | None = None) -> Entitlement:
        """Return what the policies leave to the owner right now.

        *key* is that of the server's pod, by default the one that the spawner makes.

        Raises:
            Refusal: The administrator's function fails.
        """
        return Entitlement(self._runtime)


def policing(spawner: Host, runtime: Runtime) -> Policing:
    """Return what judges a spawner's servers."""
    if runtime.policies is None:
        return Policing(spawner, runtime)
    return runtime.policies.policing(spawner)
