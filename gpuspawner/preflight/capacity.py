"""How many more servers of one kind the cluster can hold: on its nodes, and on those to come.

The servers are placed one after another on a copy of the state, each by the verdict that a start
would get. Pods that wait already, and those that starts are about to send, are placed before them.
In a cluster of a thousand nodes this takes part of a second, so it takes turns with everything else
on the event loop. Only the copy is of one moment: pools and images are read when it is their turn.
"""

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence

import msgspec
from msgspec.structs import replace

from gpuspawner.cluster.background import Turn
from gpuspawner.kube.objects import Undecodable
from gpuspawner.kube.pods import ClaimSource
from gpuspawner.preflight.counts import NodeCounts
from gpuspawner.preflight.decision import ResourceRoom
from gpuspawner.preflight.downloads import containers
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.reservations.pending_pods import may_be_bound
from gpuspawner.scaling.new_nodes import Future, Judged
from gpuspawner.scaling.node_pool import Machine
from gpuspawner.scaling.nodes_to_come import NodesToCome
from gpuspawner.scaling.outlook import MayScaleUp, Obstacle
from gpuspawner.scheduling.priority import priority_of
from gpuspawner.scheduling.shared_gpus import refuses, several
from gpuspawner.scheduling.state import ClusterState
from gpuspawner.scheduling.verdict import NO_ROOM, Outcome
from gpuspawner.scheduling.verdicts import Subject, Verdicts, is_simple, new_claims

_APART = "servers keep each other off nodes, so a new node may hold fewer than its resources allow"


class ServerLimit(msgspec.Struct, frozen=True):
    """A limit on servers, whatever the nodes have.

    Attributes:
        policy: Whose it is; "" for a quota of the namespace.
        allows: How many of the servers.
        message: What it says to the next one.
    """

    policy: str
    allows: int
    message: str


class NewNodes(msgspec.Struct, frozen=True):
    """Nodes of one pool that servers need, on their way or still to be added.

    Attributes:
        minutes: How many minutes such a node usually takes; None if nobody has said or seen it.
    """

    pool: str
    nodes: int
    servers: int
    minutes: float | None


class Pull(msgspec.Struct, frozen=True):
    """An image that nodes have to pull, and its bytes, if a node tells them."""

    image: str
    nodes: int
    size: int | None


class Headroom(msgspec.Struct, frozen=True):
    """What becomes of some equal servers, if they start now one after another.

    Attributes:
        limits: Those that don't allow all of them.
        fits_now: How many fit on the nodes that exist.
        preempted: How many pods of lower priority end for these.
        ahead: How many pods wait already, and were placed first.
        new_nodes: The nodes that others need.
        perhaps: How many may start, but nobody knows.
        unknown: Why nobody knows it; empty if a pool may bring nodes that it hasn't shown yet.
        short_of: What the nodes have too little of for the rest; None if resources aren't short.
        obstacles: Why no further node comes for the rest.
        pulls: The images that aren't on the nodes yet.
    """

    servers: int
    limits: tuple[ServerLimit, ...] = ()
    fits_now: int = 0
    preempted: int = 0
    ahead: int = 0
    new_nodes: tuple[NewNodes, ...] = ()
    perhaps: int = 0
    unknown: tuple[str, ...] = ()
    short_of: ResourceRoom | None = None
    obstacles: tuple[Obstacle, ...] = ()
    pulls: tuple[Pull, ...] = ()

    @property
    def allowed(self) -> int:
        """How many the limits allow."""
        return min((it.allows for it in self.limits), default=self.servers)

    @property
    def on_new_nodes(self) -> int:
        """How many fit on nodes that can still come."""
        return sum(it.servers for it in self.new_nodes)

    @property
    def without_room(self) -> int:
        """How many are allowed, but find no room."""
        return self.allowed - self.fits_now - self.on_new_nodes - self.perhaps

    @property
    def lacking(self) -> int:
        """How many can't start."""
        return self.servers - self.allowed + self.without_room


async def headroom(
    state: ClusterState,
    to_come: NodesToCome,
    proposal: Proposal,
    servers: int,
    turn: Turn,
    limits: Sequence[ServerLimit] = (),
    promised: Sequence[Subject] = (),
) -> Headroom:
    """Return what becomes of so many servers like the proposed one. Changes nothing.

    *promised* are pods with a promise of room that the state doesn't show yet.
    """
    found, server = Headroom(servers, tuple(limits)), proposal.subject
    if isinstance(server, Undecodable):
        return replace(found, perhaps=found.allowed, unknown=(server.problem,))
    images = tuple(dict.fromkeys(str(it.get("image")) for it in containers(proposal.pod)))
    at_hand = state.images.nodes(*images) if images else frozenset[str]()
    trial = _Trial(await _copy(state, turn), server, at_hand, turn)
    if unknown := trial.unknown(server):
        return replace(found, perhaps=found.allowed, unknown=unknown)
    waiting = await trial.place_pending(promised)
    nodes = [it async for it in trial.place(found.allowed)]
    found = replace(found, fits_now=len(nodes), preempted=trial.preempted, ahead=trial.ahead)
    if found.without_room:
        found = await _on_new_nodes(found, trial, to_come, proposal, waiting)
    new = sum(it.nodes for it in found.new_nodes)
    lacking = {it: len(set(nodes) - state.images.nodes(it)) + new for it in images}
    pulls = (Pull(it, number, state.images.size(it)) for it, number in lacking.items() if number)
    return replace(found, pulls=tuple(pulls))


async def _copy(state: ClusterState, turn: Turn) -> ClusterState:
    made = state
    for made in state.copies():  # noqa: B007, the last one is whole
        await turn.end_if_long()
    return made


class _Trial:
    """A copy of the cluster's state, in which servers find their nodes.

    Args:
        at_hand: The nodes that have the images: kube-scheduler prefers them.

    Attributes:
        ahead, preempted: As in `Headroom`, so far.
    """

    def __init__(
        self, state: ClusterState, server: Subject, at_hand: frozenset[str], turn: Turn
    ) -> None:
        self._priority = priority_of(server.pod, state)
        self._server = server
        self._at_hand = at_hand
        self.turn = turn
        self.state = state
        self.verdicts = Verdicts(state)
        self.ahead = self.preempted = 0

    def server(self, number: int) -> Subject:
        """Return one of the servers, with a name and new claims of its own."""
        pod, claims = self._server.pod, []
        volumes = {it.name: it for it in pod.spec.volumes or ()}
        for claim in self._server.new_claims:
            old, name = claim["metadata"]["name"], f"{claim['metadata']['name']}-{number}"
            place = {"name": name, "namespace": pod.metadata.namespace}
            claims.append({**claim, "metadata": {**claim["metadata"], **place}})
            for its in [
                it for it in volumes.values() if it.persistent_volume_claim == ClaimSource(old)
            ]:
                volumes[its.name] = replace(its, persistent_volume_claim=ClaimSource(name))
        priority = self._priority.value if self._priority.known else pod.spec.priority
        spec = replace(pod.spec, priority=priority, volumes=[*volumes.values()])
        metadata = replace(pod.metadata, name=f"{pod.metadata.name}-{number}")
        return Subject(replace(pod, metadata=metadata, spec=spec), tuple(claims))

    def unknown(self, server: Subject) -> tuple[str, ...]:
        """Return why nobody knows what becomes of a server; empty if that is known."""
        verdict = self.verdicts.verdict(server)
        is_known = verdict.outcome is not Outcome.UNKNOWN
        return () if is_known else tuple(map(str, verdict.unknown))

    async def place_pending(self, promised: Sequence[Subject]) -> list[Subject]:
        """Place the pods that wait and that no server preempts; return those without room."""
        waiting = []
        judged = Judged.of(self.state, self._server)
        pending = (Subject(it) for it in self.state.unbound_pods.values() if may_be_bound(it))
        for pod in (*promised, *pending):
            await self.turn.end_if_long()
            verdict = self.verdicts.verdict(pod)
            if judged.may_preempt(pod.pod) or verdict.rejected or verdict.in_use:
                continue
            if verdict.outcome is Outcome.FITS:
                self._bind(pod, min(verdict.feasible))
            elif verdict.outcome in NO_ROOM:
                waiting.append(pod)
            self.ahead += 1
        return waiting

    async def alike(self, pods: Iterable[Subject]) -> list[tuple[Judged, int]]:
        """Return how many pods need the same of a new node, each kind once."""
        kinds: dict[object, tuple[Judged, int]] = {}
        for pod in pods:
            await self.turn.end_if_long()
            shape = self.verdicts.shape_on_new_nodes(pod)
            judged, number = kinds.get(shape) or (Judged.of(self.state, pod), 0)
            kinds[shape] = judged, number + 1
        return [*kinds.values()]

    async def place(self, servers: int) -> AsyncIterator[str]:
        """Place servers until one finds no room; yield their nodes."""
        for number in range(servers):
            await self.turn.end_if_long()
            server = self.server(number)
            if (node := self._free_node(server) or self._node_to_clear(server)) is None:
                return
            self._bind(server, node)
            yield node

    def _free_node(self, server: Subject) -> str | None:
        shares, nodes = several(server.pod), self.state.nodes
        found = (it for it in self.verdicts.nodes(server) if not refuses(nodes[it], shares))
        return min(found, key=lambda it: (it not in self._at_hand, it), default=None)

    def _node_to_clear(self, server: Subject) -> str | None:
        """Return a node where the server fits, once pods of lower priority have ended there."""
        node = self.verdicts.verdict(server).preemption_node
        victims = self.state.nodes[node].below(self._priority.value).pods if node else ()
        for victim in sorted(victims, key=lambda it: it.priority):
            self.state.remove("Pod", victim.namespace, victim.name)
            self.preempted += 1
            if node in self.verdicts.nodes(server):
                break
        return node

    def _bind(self, subject: Subject, node: str) -> None:
        for claim in new_claims(subject):
            self.state.put(claim)
        self.state.put(subject.pod.with_spec(node_name=node))


async def _on_new_nodes(
    found: Headroom,
    trial: _Trial,
    to_come: NodesToCome,
    proposal: Proposal,
    waiting: Sequence[Subject],
) -> Headroom:
    """Return what becomes of the servers that find no room on the nodes that exist."""
    rest, server, pool = found.without_room, trial.server(found.fits_now), proposal.declared_pool
    if unknown := trial.unknown(server):
        return replace(found, perhaps=rest, unknown=unknown)
    if trial.verdicts.verdict(server).in_use:  # only the end of another pod helps
        return found
    pod, others = Judged.of(trial.state, server), await trial.alike(waiting)
    futures = to_come.futures(server, pool, rest + len(waiting))
    if any(it.slots for it in futures) and not is_simple(server.pod):
        return replace(found, perhaps=rest, unknown=(_APART,))
    await trial.turn.end_if_long()
    packed = _packed(futures, others, pod, rest, trial.turn)
    found = replace(found, new_nodes=(*[it async for it in packed],))
    if not found.without_room:
        return found
    outlook, after = to_come.outlook(proposal.key, server, pool), [it.after(pod) for it in futures]
    if isinstance(outlook, MayScaleUp) or any(it.is_possible for it in after):
        return replace(found, perhaps=found.without_room)
    counts = NodeCounts(trial.state)
    short = counts.shortage(server.pod, counts.candidates(server.pod), proposal.grant)
    return replace(
        found, short_of=short, obstacles=tuple(it.obstacle for it in after if it.obstacle)
    )


async def _packed(
    futures: Sequence[Future],
    waiting: Iterable[tuple[Judged, int]],
    pod: Judged,
    servers: int,
    turn: Turn,
) -> AsyncIterator[NewNodes]:
    """Pack the pods that wait, and then servers, on the nodes that pools can bring."""
    # The further nodes of a pool are one and the same object.
    pools = [
        [replace(it, node=replace(it.node, free=dict(it.node.free))) for it in future.slots]
        for future in futures
    ]
    slots = [slot for pool in pools for slot in pool]
    for other, number in waiting:
        await _fill(slots, other, number, turn)
    for future, pool in zip(futures, pools, strict=True):
        taken = await _fill(pool, pod, servers, turn)
        servers -= taken.total()
        if taken:
            growth = future.growth
            yield NewNodes(growth.pool, len(taken), taken.total(), growth.minutes)


async def _fill(slots: Sequence[Machine], pod: Judged, most: int, turn: Turn) -> Counter[int]:
    """Give so many pods room on the first nodes that hold them; return how many each has got."""
    taken = Counter[int]()
    for place, slot in enumerate(slots):
        free = slot.node.free
        while taken.total() < most:
            await turn.end_if_long()
            if not (demand := pod.demand({"": slot})).nodes:
                break
            for resource, amount in demand.requests.items():
                free[resource] = free.get(resource, 0) - amount
            taken[place] += 1
    return taken
