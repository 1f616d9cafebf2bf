"""Where servers come from: our accelerators, or KubeSpawner's profiles.

Nothing above a source knows which of the two an administrator has chosen.
"""

from asyncio import Future
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from gpuspawner import messages
from gpuspawner.admission.dry_run import Admission
from gpuspawner.kube.manifest import Manifest
from gpuspawner.messages import Message, OnForm
from gpuspawner.options import Gone
from gpuspawner.preflight.decision import Refuse
from gpuspawner.preflight.proposal import Proposal

Options = dict[str, object]
"""Options as the hub stores them: ours, and beside them an administrator's own."""


@dataclass(frozen=True, slots=True)
class Stored:
    """The options of an earlier start, as far as they can be had.

    Attributes:
        options: The options, with defaults for what is gone.
        gone: What is no longer on offer.
    """

    options: object
    gone: tuple[Gone, ...] = ()


class Choice(Protocol):
    """Options that have been read and granted."""

    @property
    def options(self) -> Options:
        """The options as the hub is to store them."""

    @property
    def proposal(self) -> Proposal:
        """The pod that they come to."""

    def sending(self, pod: Manifest) -> "Choice":
        """The same with the pod that is really sent, as the API writes it."""

    def complete(self, pod: Any) -> Any:
        """KubeSpawner's pod at the moment in which it is sent, with what was granted.

        Raises:
            Refusal: The grant contradicts KubeSpawner's configuration.
        """

    async def explain(self, refusal: Refuse, admission: Admission) -> tuple[Message, OnForm]:
        """A refusal in words, for everywhere and for the form, with what would start instead."""


@dataclass(frozen=True)
class NoChoice:
    """Nothing was chosen: a start that didn't come through the second gate."""

    proposal: Proposal
    options: Options = field(default_factory=dict)

    def sending(self, pod: Manifest) -> "NoChoice":
        """As `Choice.sending`."""
        return replace(self, proposal=replace(self.proposal, pod=pod))

    def complete(self, pod: Any) -> Any:
        """As `Choice.complete`: nothing was granted."""
        return pod

    async def explain(self, refusal: Refuse, admission: Admission) -> tuple[Message, OnForm]:  # noqa: ARG002
        """As `Choice.explain`, without anything instead."""
        return messages.refusal(refusal), OnForm.of_refusal(refusal)


class Source(Protocol):
    """What an administrator offers, before one person."""

    async def ready(self, patience: float) -> None:
        """Wait until it is known what is on offer, at most *patience* seconds."""

    def begin(self) -> None:
        """A start begins: KubeSpawner is about to load what was chosen into the spawner."""

    def end(self, started: Future[object]) -> None:
        """The start has ended."""

    async def resolve(self, raw: object) -> Choice:
        """Read options, as they came, and propose their pod.

        Raises:
            Refusal: They can't be read, the person may not have them, or the configuration
                contradicts them.
        """

    @property
    def reads_form(self) -> Callable[..., Any]:
        """What reads a form that has been sent, for JupyterHub's ``options_from_form``."""

    def stored(self) -> Stored:
        """The options for a start that says nothing."""

    async def form(self) -> str:
        """The fields of the spawn form, as HTML."""
