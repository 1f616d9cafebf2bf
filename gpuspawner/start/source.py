"""The source of servers: our accelerators, or KubeSpawner's profiles.

Callers of a source don't know which of the two the administrator has configured.
"""

from asyncio import Future
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

import msgspec

from gpuspawner import messages
from gpuspawner.kube.objects import Manifest
from gpuspawner.messages import Message, OnForm
from gpuspawner.offers.user_options import Gone
from gpuspawner.preflight.decision import Refuse
from gpuspawner.preflight.dry_runs import Admission
from gpuspawner.preflight.learned_hooks import Later
from gpuspawner.preflight.proposed_pod import Proposal

Options = dict[str, object]
"""Options as the hub stores them: ours, and those that an administrator's hooks read."""


class Stored(msgspec.Struct, frozen=True):
    """The options of an earlier start, with defaults for those that are no longer on offer."""

    options: object
    gone: tuple[Gone, ...] = ()


@dataclass(frozen=True)
class Choice:
    """Options that have been read and granted, or none if a start has skipped the second gate.

    Attributes:
        proposal: The pod for these options.
        options: As the hub stores them.
        kept_off: The nodes that others in line hold, by their labels: the pod mustn't go there.
        traits: The spawner's traits that gates read before KubeSpawner loads a profile, if this one
            sets its own: `preflight`, and how long a start may take, in seconds.
    """

    proposal: Proposal
    options: Options = field(default_factory=dict)
    kept_off: tuple[str, ...] = ()
    traits: Mapping[str, Any] = field(default_factory=dict)

    @property
    def profile(self) -> str:
        """The slug of its profile; "" without one."""
        return ""

    @property
    def display_names(self) -> Mapping[str, str]:
        """The display names of what it was chosen from beside the hub's offers, by key."""
        return {}

    def sending(self, pod: Manifest, **its: Any) -> Self:
        """Return the same choice with the pod that is really sent, as the API writes it.

        *its* are the other fields of the proposal that are known by then: names, and new claims.
        """
        sent = replace(self.proposal, pod=pod, is_open=False, is_unfinished=False, **its)
        return replace(self, proposal=sent)

    def kept_off_nodes(self, hostnames: tuple[str, ...]) -> Self:
        """Return the same choice with a pod that is kept off these nodes."""
        return replace(self, proposal=self.proposal.kept_off(hostnames), kept_off=hostnames)

    def created(self) -> Self:
        """Return the same choice with a pod that exists, for which no queue is asked any more."""
        return replace(self, proposal=replace(self.proposal, is_admitted=True))

    def complete(self, pod: Manifest) -> Manifest:
        """Return KubeSpawner's pod, as the API writes it, with the grant.

        Raises:
            Refusal: The grant contradicts KubeSpawner's configuration.
        """
        return pod

    async def explain(self, refusal: Refuse, admission: Admission) -> tuple[Message, OnForm]:  # noqa: ARG002
        """Word a refusal, as a message and for the form, with alternatives that would start."""
        return messages.refusal(refusal), OnForm.of_refusal(refusal)


class FormReader(msgspec.Struct, frozen=True):
    """Reads a sent form as the source at that moment does: a function may set profiles until then.

    The default of JupyterHub's ``options_from_form``.
    """

    source: Callable[[], "ServerSource"]

    def __call__(self, form_data: dict[str, list[object]]) -> Any:
        """Return the options in the form."""
        return self.source().reads_form(form_data)


class ServerSource(Protocol):
    """The administrator's offers to one user.

    KubeSpawner loads profiles into the spawner, so `begin` and `end` enclose a start.
    """

    async def ready(self, patience: float) -> None:  # noqa: ARG002
        """Wait until the offers are known, at most *patience* seconds; here, they always are."""
        return

    def begin(self) -> None:
        """Prepare for a start."""
        return

    def end(self, started: Future[object]) -> None:  # noqa: ARG002
        """Clean up after a start."""
        return

    async def resolve(self, raw: object) -> Choice:
        """Read options as sent, and propose their pod.

        Raises:
            Refusal: They can't be read, the user may not have them, or the configuration
                contradicts them.
        """

    @property
    def reads_form(self) -> Callable[..., Any]:
        """The function that reads a sent form."""

    @property
    def later(self) -> Later:
        """What becomes of the pods that it proposes."""

    async def requested(self) -> Stored:
        """The options of the request that starts the server, or the stored ones if it sends none.

        Raises:
            Refusal: They can't be read.
        """

    async def stored(self) -> Stored:
        """The stored options, for a start that sends none."""

    async def form(self, before: Sequence[str] = ()) -> str:
        """Render the fields of the spawn form as HTML.

        *before* says what became of the last server, in a sentence each.
        """
