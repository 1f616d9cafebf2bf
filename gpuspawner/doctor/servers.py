"""The servers that users can choose, and what the hub would say to each of them now."""

import json
from collections.abc import AsyncIterator, Iterator

import msgspec
from tornado import web

from gpuspawner.doctor.command import UsageError
from gpuspawner.doctor.hub import Hub
from gpuspawner.kube.pods import Pod
from gpuspawner.kube.quoting import one_line
from gpuspawner.messages import profile_named
from gpuspawner.offers import options, parsing
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.parsing import GPURequest
from gpuspawner.offers.types import Accelerator
from gpuspawner.preflight.decision import Decision, Refuse, rejected
from gpuspawner.preflight.proposal import Proposal
from gpuspawner.preflight.rejection import OverQuota, Rejection
from gpuspawner.profiles.choice import ProfileChoice
from gpuspawner.profiles.profile_list import Profile
from gpuspawner.profiles.profile_options import PROFILE
from gpuspawner.start.refusal import Refusal
from gpuspawner.start.source import Choice

NO_GPU = "a server without a GPU"


class OfferedServer(msgspec.Struct, frozen=True):
    """One choice that users have.

    Attributes:
        offer: The accelerator or profile, as a sentence names it.
        place: Where the configuration has it.
        options: As a user would send them.
        more: How it differs from the smallest server of the offer; "" if it is the smallest.
    """

    offer: str
    place: str
    options: dict[str, object]
    more: str = ""

    @property
    def name(self) -> str:
        """The whole choice, as a sentence names it."""
        return f"{self.offer} with {self.more}" if self.more else self.offer

    @property
    def smallest(self) -> bool:
        """Whether no choice of the same offer needs less."""
        return not self.more


class Tried(msgspec.Struct, frozen=True):
    """A server, and what the hub would say.

    Attributes:
        proposal: Its pod, after admission; None if there can be no pod.
        problem: Why there can be no pod.
        choice: What the options mean, before admission; None if they mean nothing.
    """

    server: OfferedServer
    proposal: Proposal | None = None
    decision: Decision | None = None
    problem: str = ""
    choice: Choice | None = None

    @property
    def pod(self) -> Pod | None:
        """The proposal's pod; None if there can be none, or it can't be read."""
        return self.proposal.decoded if self.proposal else None

    @property
    def resources(self) -> frozenset[str]:
        """The names of what its containers may use."""
        containers = (self.pod.spec.containers or ()) if self.pod else ()
        return frozenset(
            name for it in containers if it.resources for name in it.resources.limits or ()
        )

    @property
    def runtime_class(self) -> str:
        """The name of its RuntimeClass; "" for the nodes' default runtime."""
        spec = self.proposal.pod.get("spec") if self.proposal else None
        return str((spec or {}).get("runtimeClassName") or "")


async def listed(hub: Hub) -> list[OfferedServer]:
    """Return the smallest server of each offer, and those that need the most of one thing.

    Raises:
        UnusableError: Nobody could start a server.
    """
    if hub.spawner.gpuspawner_gates.sources.accelerators is not None:
        return [*_of_accelerators(hub.offers)]
    choice = await _resolved(hub, {})
    profiles = choice.listed.profiles if isinstance(choice, ProfileChoice) else ()
    return [server for profile in profiles for server in _of_profile(profile)]


class UnusableError(Exception):
    """The hub would refuse these options, no matter what the cluster has."""


async def trying(hub: Hub, servers: list[OfferedServer]) -> AsyncIterator[Tried]:
    """Ask the hub's gates about each server."""
    for server in servers:
        yield await try_out(hub, server)


async def try_out(hub: Hub, server: OfferedServer) -> Tried:
    """Resolve a server's options, ask admission, and judge the pod that comes back."""
    try:
        choice = await _resolved(hub, server.options)
    except UnusableError as error:
        return Tried(server, problem=str(error))
    proposal = choice.proposal
    if proposal.pod.get("spec") is None:
        return Tried(server, problem="KubeSpawner can't make a pod of its settings.")
    admitted = await hub.admission.admit(proposal.namespace, proposal.pod)
    if isinstance(admitted, Rejection):
        decision = rejected(proposal.grant, admitted)
        return Tried(server, proposal, decision, choice=choice)
    if admitted is not None:
        proposal = proposal.admitted(admitted)
    return Tried(server, proposal, hub.runtime.preflight.decider.check(proposal), choice=choice)


async def _resolved(hub: Hub, raw: object) -> Choice:
    try:
        return await hub.spawner.gpuspawner_gates.sources.current.resolve(raw)
    except Refusal as error:
        raise UnusableError(one_line(error.details or error.text)) from error
    except web.HTTPError as error:  # an administrator's function forbids it
        raise UnusableError(one_line(error.log_message or str(error))) from error


def asked_for(hub: Hub, what: str) -> dict[str, object]:
    """Return the options that choose an accelerator or a profile by its key, or that are JSON.

    Raises:
        UsageError: They aren't JSON.
    """
    if not what.lstrip().startswith("{"):
        offered = hub.spawner.gpuspawner_gates.sources.accelerators
        return {"accelerator": what} if offered else {PROFILE: what}
    try:
        return dict(json.loads(what))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"these options aren't JSON: {error}") from error


async def proposed(hub: Hub, what: str) -> tuple[Proposal, Choice]:
    """Return the proposal of the server that `asked_for` chooses, after admission, and the choice.

    Raises:
        UsageError: There can be no such server. A quota that is used up is no reason.
    """
    tried = await try_out(hub, OfferedServer(what, "", asked_for(hub, what)))
    rejection = tried.decision.rejection if isinstance(tried.decision, Refuse) else None
    if rejection is not None and not isinstance(rejection.cause, OverQuota):
        raise UsageError(f"the API server rejects the pod: {rejection.text}")
    if tried.proposal is None or tried.choice is None:
        raise UsageError(tried.problem)
    return tried.proposal, tried.choice


def _of_accelerators(offers: Offers) -> Iterator[OfferedServer]:
    for accelerator in (*offers.accelerators.values(), None):
        yield from _of_accelerator(offers, accelerator)


def _of_accelerator(offers: Offers, accelerator: Accelerator | None) -> Iterator[OfferedServer]:
    key = accelerator.key if accelerator else None
    choices = offers.choices(accelerator)
    memory = sorted(choices.memory, key=lambda it: it.bytes)
    smallest = GPURequest(
        accelerator=key,
        gpus=min(choices.counts),
        memory=memory[0].text if memory else None,
        cpu=options.in_cores(min(choices.cpu)) if choices.cpu else None,
    )
    offer = key or NO_GPU
    place = f"GPUSpawner.accelerators[{key!r}]" if key else "the configuration"
    if accelerator and accelerator.discovered:
        place = "the nodes' labels"

    def server(request: GPURequest, more: str = "") -> OfferedServer:
        # The image changes nothing about the place, so the default is as good as any.
        chosen = {k: v for k, v in parsing.user_options(request).items() if k != options.IMAGE.name}
        return OfferedServer(offer, place, dict(chosen), more)

    yield server(smallest)
    if len(set(choices.counts)) > 1:
        most = max(choices.counts)
        yield server(msgspec.structs.replace(smallest, gpus=most), f"{most} GPUs")
    if len(memory) > 1:
        text = memory[-1].text
        yield server(msgspec.structs.replace(smallest, memory=text), f"{text} of memory")
    if len(set(choices.cpu)) > 1:
        cores = options.in_cores(max(choices.cpu))
        yield server(msgspec.structs.replace(smallest, cpu=cores), f"{cores} cores")


def _of_profile(profile: Profile) -> Iterator[OfferedServer]:
    place = "KubeSpawner.profile_list"
    offer = f"the profile {profile_named(profile.name)}"
    usual: dict[str, object] = {PROFILE: profile.slug}
    yield OfferedServer(offer, place, usual)
    for option in profile.options:
        for choice in option.choices:
            if not choice.default:
                chosen = {**usual, option.name: choice.key}
                yield OfferedServer(offer, place, chosen, profile_named(choice.name))
