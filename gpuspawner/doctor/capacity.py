"""`gpuspawner capacity`: which GPUs are free, by accelerator or profile and by node."""

from inspect import cleandoc
from typing import Any

import msgspec
from msgspec.structs import asdict, astuple
from traitlets import Int, List, Unicode

from gpuspawner.cluster.background import Turn
from gpuspawner.doctor import terminal
from gpuspawner.doctor.application import UsageError
from gpuspawner.doctor.hub import Hub
from gpuspawner.doctor.hub_command import PROFILE_HELP, FromFiles
from gpuspawner.doctor.nodes import away, free_on_each, groups, names, used
from gpuspawner.doctor.offered_servers import listed
from gpuspawner.gates import capacity
from gpuspawner.gates.what_if import NOBODY, Tried, UnusableError, try_out
from gpuspawner.messages.capacity import outcomes, remarks
from gpuspawner.messages.words import figure
from gpuspawner.offers.discovery import gpus
from gpuspawner.policies.owner import Owner
from gpuspawner.preflight.counts import NodeCounts, room
from gpuspawner.preflight.decision import Refuse, Start, Wait
from gpuspawner.scheduling import NodeInfo
from gpuspawner.scheduling.requests import CPU, MEMORY

_TURN_SECONDS = 1.0
"""There is no hub in this process that waits."""
_MOST_GROUPS = 30
"""How many groups of nodes fit on a screen."""


class Row(msgspec.Struct, frozen=True):
    """One accelerator or profile, and the nodes that have its GPUs and may take its server.

    The fields are the columns of the table.
    """

    offer: str
    resource: str
    nodes: int
    total: int
    used: int
    free: int
    most_on_a_node: int
    now: str


class Capacity(FromFiles):
    """Show which GPUs are free, by accelerator or profile and by node.

    With --servers and --profile, show instead what becomes of so many servers if they start now:
    how many fit, how many need new nodes, and what is missing. The exit status is 0 if all can
    start, 1 if some can't, 2 if that is unknown, and 3 if the question can't be answered.
    """

    name = "capacity"
    description = __doc__
    examples = cleandoc("""
        gpuspawner capacity -f jupyterhub_config.py
        kubectl exec deploy/hub -- python3 -m gpuspawner capacity
        gpuspawner capacity --servers 50 --profile t4 --group course
    """)

    servers = Int(help="How many servers of --profile are to start.", min=0).tag(config=True)
    profile = Unicode(help=PROFILE_HELP).tag(config=True)
    groups = List(Unicode(), help="A group: judge the policies for its members, too.").tag(
        config=True, option="group"
    )

    @property
    def owner(self) -> Owner:
        """A member of the groups, with the role that JupyterHub gives to every user."""
        groups = frozenset(self.groups)
        return Owner(NOBODY.name, groups, frozenset({"user"})) if groups else NOBODY

    async def ask(self, hub: Hub) -> int:
        """Print the tables, or what becomes of the servers."""
        if bool(self.servers) != bool(self.profile) or (self.groups and not self.servers):
            raise UsageError(
                "give both --servers, which is 1 or more, and --profile; --group needs them, too"
            )
        if self.servers:
            return await self._of_servers(hub)
        try:
            servers = [server for server in await listed(hub) if server.smallest]
        except UnusableError as error:
            terminal.complain(f"No user can start a server: {error}")
            servers = []
        rows = [_row(hub, await try_out(hub, it)) for it in servers]
        nodes = list(hub.state.nodes.values())
        plain = {"offers": [*map(asdict, rows)], "nodes": [*map(_plain, nodes)]}
        self.answer(plain, lambda: _tell(rows, nodes))
        return 0

    async def _of_servers(self, hub: Hub) -> int:
        told = await capacity.capacity(hub, self.profile, self.servers, Turn(_TURN_SECONDS))
        self.answer(_of_many(told), lambda: self._tell_of_many(hub, told))
        return 1 if told.found.lacking else 2 if told.found.perhaps else 0

    def _tell_of_many(self, hub: Hub, told: capacity.ManyServers) -> None:
        number = told.found.servers
        terminal.say(f"{number} server{'s' * (number != 1)} with {self.profile}:")
        terminal.table(("SERVERS", "WHAT BECOMES OF THEM"), outcomes(told.found))
        for remark in remarks(told.found, told.queue, told.unjudged_quotas):
            terminal.say(remark)
        if hub.policies and not self.groups:
            terminal.say("GPUSpawner.policies aren't judged; to judge them, add --group NAME.")


def _of_many(told: capacity.ManyServers) -> dict[str, Any]:
    found = told.found
    plain: dict[str, Any] = msgspec.to_builtins(found)
    more = {"queue": told.queue, "unjudged_quotas": told.unjudged_quotas}
    return {**plain, "on_new_nodes": found.on_new_nodes, "lacking": found.lacking, **more}


def _row(hub: Hub, tried: Tried) -> Row:
    accelerator = tried.proposal.grant.accelerator if tried.proposal else None
    candidates = NodeCounts(hub.state).candidates(tried.pod)
    if accelerator is None:
        return Row(tried.server.offer, "", len(candidates), 0, 0, 0, 0, _now(tried))
    resource = accelerator.resource
    nodes = [node for node in candidates if node.allocatable.get(resource)]
    has = room(nodes, resource, 0)
    return Row(
        tried.server.offer, resource, len(nodes), has.total, used(nodes, resource), has.free,
        has.most_free, _now(tried),
    )  # fmt: skip


def _now(tried: Tried) -> str:
    match tried.decision:
        case None:
            return "refused: unusable"
        case Wait():
            return "waits for a node"
        case Refuse(reason=reason):
            return f"refused: {reason.value}"
        case Start() as start if start.queue is not None:
            return "its queue decides"
        case Start() as start if start.seconds_to_make_room is not None:
            return "starts"
        case _:
            return "starts, unchecked"


def _tell(rows: list[Row], nodes: list[NodeInfo]) -> None:
    titles = ("OFFER", "RESOURCE", "NODES", "GPUS", "USED", "FREE", "MOST ON A NODE", "NOW")
    terminal.table(
        titles,
        [
            astuple(it) if it.resource else (it.offer, "", it.nodes, "", "", "", "", it.now)
            for it in rows
        ],
    )
    terminal.say()
    found = groups(nodes)
    lines: list[tuple[object, ...]] = []
    for group in found[:_MOST_GROUPS]:
        free = (figure(it, room(group.nodes, it, 0).free) for it in (CPU, MEMORY))
        rest = (*free, names(group.nodes))
        for resource in group.resources or ("",):
            total = room(group.nodes, resource, 0).total
            its = (total, used(group.nodes, resource), free_on_each(group.nodes, resource))
            lines.append((
                len(group.nodes), group.kind or "-", group.away or "ready", resource,
                *(its if resource else ("", "", "")), *rest,
            ))  # fmt: skip
    terminal.table(
        ("NODES", "KIND", "STATE", "RESOURCE", "GPUS", "USED", "FREE ON NODES", "CPU FREE",
         "MEMORY FREE", "NAMES"),
        lines,
    )  # fmt: skip
    if len(found) > _MOST_GROUPS:
        left = sum(len(group.nodes) for group in found[_MOST_GROUPS:])
        terminal.say(f"and {left} other nodes; --output json has all of them.")


def _plain(node: NodeInfo) -> dict[str, object]:
    return {
        "name": node.name,
        "away": away(node),
        "resources": {
            resource: {
                "capacity": node.capacity.get(resource, 0),
                "allocatable": node.allocatable.get(resource, 0),
                "used": node.requested.get(resource, 0),
            }
            for resource in sorted({*gpus(node), CPU, MEMORY})
        },
    }
