"""Whether users can start what the configuration offers, and if not, why not."""

from collections.abc import Iterator

from gpuspawner.doctor.checks import devices, labels, queues, storage
from gpuspawner.doctor.checks.causes import Cause, cause
from gpuspawner.doctor.checks.devices import Ill
from gpuspawner.doctor.checks.labels import Selectors
from gpuspawner.doctor.checks.settings import own_code
from gpuspawner.doctor.hub import Hub
from gpuspawner.doctor.nodes import names, selected
from gpuspawner.gates.what_if import OfferedServer, Tried
from gpuspawner.kube.quoting import count, listing
from gpuspawner.messages.administrators import Finding, fine
from gpuspawner.offers.discovery import gpus
from gpuspawner.preflight.decision import Refuse, Start, UnknownRules, Wait
from gpuspawner.scaling.outlook import CanScaleUp, MayScaleUp


def check(hub: Hub, tried: list[Tried], ill: Ill) -> Iterator[Finding]:
    """Check each offer: its smallest server, and then those that need most of one thing."""
    found: dict[Cause, list[tuple[OfferedServer, str]]] = {}
    sound: list[Tried] = []
    every = labels.of_every_server(hub.spawner)
    selectors = Selectors(every, {it for one in tried for it in labels.selected_by(one.pod)})
    broken: set[str] = set()
    for it in tried:
        offer = it.server.offer
        if devices.is_all_of(hub.state, it, ill) or storage.is_without_class(hub.state, it):
            broken.add(offer)  # those checks say so
        if offer in broken:
            continue
        because = own_code(hub, it.failure) if it.failure else cause(hub.state, it, selectors)
        if because is None:
            sound.append(it)
            continue
        found.setdefault(because, []).append((it.server, because.detail))
        if it.server.smallest:
            broken.add(offer)
    for because, servers in found.items():
        yield because.finding(servers)
    for offer in dict.fromkeys(it.server.offer for it in sound):
        its = [it for it in sound if it.server.offer == offer]
        yield _untold(its) if queues.are_unseen(hub) else _fine(its)
    if all(it.proposal for it in tried):
        yield from _not_offered(hub, tried)


def _untold(tried: list[Tried]) -> Finding:
    text = (
        "Each user's namespace may have its own queue in Kueue, which then decides when "
        f"{_all([it.server for it in tried])} can start."
    )
    return fine("offer", text, "Name a user with --user, to check their queue.")


def _fine(tried: list[Tried]) -> Finding:
    """Say what users can start now, and what they would have to wait for."""
    starts = [(it.server, it.decision) for it in tried if isinstance(it.decision, Start)]
    queued = [server for server, start in starts if start.queue is not None]
    free = [(server, start) for server, start in starts if start.queue is None]
    now = [server for server, start in free if not _doubted(start)]
    unchecked = [server for server, start in free if _doubted(start)]
    growing = [(it.server, it.decision) for it in tried if isinstance(it.decision, Wait)]
    pool = _pool(growing[0][1].scale_up) if growing else ""
    refused = [(it.server, it.decision) for it in tried if isinstance(it.decision, Refuse)]
    closed = [server for server, refusal in refused if refusal.queue is not None]
    busy = [server for server, refusal in refused if refusal.queue is None]
    said = (
        ("Users can start {} now.", now),
        ("Users can start {} unchecked.", unchecked),
        ("Kueue decides when {} can start.", queued),
        (f"A new node has to come for {{}}: {pool}.", [server for server, _ in growing]),
        ("Their queue in Kueue takes nobody right now: {}.", closed),
        ("In use now, so refused until other servers end: {}.", busy),
    )
    return fine("offer", " ".join(text.format(_all(its)) for text, its in said if its))


def _pool(outlook: CanScaleUp | MayScaleUp) -> str:
    match outlook:
        case MayScaleUp():
            return "only the autoscaler's answer to a pod shows whether it can"
        case CanScaleUp(nodes=nodes, max_nodes=None):
            return f"its pool has {count(nodes)} and can grow"
    return f"its pool has {count(outlook.nodes)} and can have {outlook.max_nodes}"


def _doubted(start: Start) -> bool:
    return any(isinstance(note, UnknownRules) for note in start.notes)


def _all(servers: list[OfferedServer]) -> str:
    """Name servers of one offer: `t4 (also with 2 GPUs or 16Gi of memory)`."""
    more = [server.more for server in servers if server.more]
    offer = servers[0].offer
    if not more:
        return offer
    also = listing(more)
    return f"{offer} (also with {also})" if servers[0].smallest else f"{offer} with {also}"


def _not_offered(hub: Hub, tried: list[Tried]) -> Iterator[Finding]:
    """Name the GPUs that no offer reaches."""
    reached = {
        node.name
        for it in tried
        if it.proposal and it.proposal.grant.accelerator
        for node in selected(hub.state, it)
    }
    others = [n for n in hub.state.nodes.values() if n.name not in reached and any(gpus(n))]
    if others:
        # With both, the hub doesn't start.
        has_profiles = bool(hub.spawner.profile_list)
        place = "KubeSpawner.profile_list" if has_profiles else "GPUSpawner.accelerators"
        yield fine(
            "not-offered",
            f"No accelerator or profile reaches {count(len(others))} with GPUs ({names(others)}).",
            f"Offer them in {place}, if users should have them.",
        )
