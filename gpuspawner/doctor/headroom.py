"""`gpuspawner capacity --servers`: whether so many servers fit, and what is missing."""

from collections.abc import Iterator
from math import ceil
from typing import Any

import msgspec

from gpuspawner.doctor import terminal
from gpuspawner.doctor.hub import Hub
from gpuspawner.doctor.judged import left_to_members
from gpuspawner.doctor.nodes import count
from gpuspawner.doctor.servers import proposed
from gpuspawner.kube.objects import Manifest
from gpuspawner.kube.quantity import parse_quantity
from gpuspawner.messages.policies import policy_denied
from gpuspawner.messages.scaling import explain_obstacles
from gpuspawner.messages.words import figure, memory, minutes
from gpuspawner.preflight.headroom import Headroom, ServerLimit, headroom
from gpuspawner.preflight.proposal import Proposal
from gpuspawner.preflight.rejection import OverQuota, Rejection


async def look(hub: Hub, what: str, servers: int) -> Headroom:
    """Judge the policies for the owner, then quotas, and then the nodes.

    Raises:
        UsageError: There can be no such server, or the policies can't be judged.
    """
    proposal, choice = await proposed(hub, what)
    limits = []
    left, denial = await left_to_members(hub, choice, servers)
    if denial is not None:
        text = policy_denied(denial, hub.runtime.display_names).text
        limits.append(ServerLimit(f"The policy {denial.policy.name}", left, text))
    left, said = await _left_by_quotas(hub, choice.proposal, servers)
    if left < servers:
        limits.append(ServerLimit("A ResourceQuota", left, said))
    elif said:
        terminal.complain(f"Quotas can't be judged, because the API server says: {said}")
    if proposal.queue:
        terminal.complain(f"The servers wait in {proposal.queue}; Kueue's quota isn't judged.")
    return headroom(hub.state, hub.runtime.preflight.to_come, proposal, servers, limits)


async def _left_by_quotas(hub: Hub, proposal: Proposal, servers: int) -> tuple[int, str]:
    """Return how many servers the namespace's quotas allow, and what the API server says.

    It judges its quotas itself, by a dry run of one pod that requests as much as all servers. If it
    rejects that pod for another reason, nobody knows.
    """
    left, text = servers, ""
    while left:
        said = await hub.admission.admit(proposal.namespace, _together(proposal.pod, left))
        if not isinstance(said, Rejection):
            break
        text = said.text
        if not isinstance(said.cause, OverQuota):
            break
        left = min(max(0, (it.limit - it.used) * left // it.asked) for it in said.cause.uses)
    return left, text


def _together(pod: Manifest, servers: int) -> Manifest:
    """Return a pod that requests as much as so many servers."""

    def times(amounts: Manifest) -> Manifest:
        millis = {it: 1000 * servers * parse_quantity(str(one)) for it, one in amounts.items()}
        return {it: f"{ceil(amount)}m" for it, amount in millis.items()}

    def grown(container: Manifest) -> Manifest:
        its = container.get("resources") or {}
        return {**container, "resources": {it: times(its.get(it) or {}) for it in _AMOUNTS}}

    spec = pod["spec"]
    return {
        **pod,
        "spec": {**spec, **{it: [*map(grown, spec.get(it) or ())] for it in _CONTAINERS}},
    }


_AMOUNTS = ("requests", "limits")
_CONTAINERS = ("containers", "initContainers")


def tell(name: str, found: Headroom) -> None:
    """Print the answer."""
    terminal.say(f"{found.servers} servers with {name}:")
    terminal.table(("SERVERS", "WHAT BECOMES OF THEM"), [it for it in _rows(found) if it[0]])
    for limit in found.limits:
        terminal.say(f"{limit.by} allows {limit.allows}. It says: {limit.message}")
    if found.ahead:
        terminal.say(f"Pods that wait already and come first: {found.ahead}.")
    for pull in found.pulls:
        size = f" ({memory(pull.size)})" if pull.size else ""
        terminal.say(f"To be pulled on {count(pull.nodes)}: {pull.image}{size}.")


def _rows(found: Headroom) -> Iterator[tuple[int, str]]:
    after = f", once {found.preempted} pods of lower priority have ended" if found.preempted else ""
    yield found.fits_now, f"start on the nodes that exist{after}"
    for it in found.new_nodes:
        usual = f", which takes {minutes(it.minutes)}" if it.minutes is not None else ""
        yield it.servers, f"start once the pool {it.pool} has added {count(it.nodes)}{usual}"
    why = "; ".join(found.unknown) or "a pool may add nodes that it hasn't shown yet"
    yield found.perhaps, f"may start, but nobody knows: {why}"
    yield found.without_room, f"find no room: {_missing(found)}"
    yield found.servers - found.allowed, "aren't allowed"


def _missing(found: Headroom) -> str:
    short, why = found.short_of, [explain_obstacles(found.obstacles)]
    if short is not None:
        asked, free = (figure(short.resource, it) for it in (short.asked, short.most_free))
        why.insert(
            0, f"each asks for {asked} of {short.resource}, and no node has more than {free}"
        )
    return "; ".join(filter(None, why)) or "no node can hold them"


def plain(found: Headroom) -> dict[str, Any]:
    """Return the answer for programs."""
    told: dict[str, Any] = msgspec.to_builtins(found)
    return {**told, "on_new_nodes": found.on_new_nodes, "lacking": found.lacking}


def status(found: Headroom) -> int:
    """Return the exit status: 0 if all can start, 1 if some can't, 2 if that is unknown."""
    return 1 if found.lacking else 2 if found.perhaps else 0
