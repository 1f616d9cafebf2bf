"""What the page of GPUs shows: plain texts and numbers, with nothing left to decide."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec

from gpuspawner.cluster.health import Health, Live, Stale
from gpuspawner.form.addresses import path_of
from gpuspawner.language import gettext as _
from gpuspawner.language import ngettext
from gpuspawner.messages import words
from gpuspawner.messages.policies import amount_of, policy_figure
from gpuspawner.policies.accounts import Accounts
from gpuspawner.policies.policies import Per, Policies, names_resource
from gpuspawner.use.census import AcceleratorGpus, Held, NodeGpus
from gpuspawner.use.holders import ORDERS, PAGE, Holder, Query
from gpuspawner.use.idle_servers import GPUUse

_NO_SERVER = ("", "")


class GpuRow(msgspec.Struct, gc=False, frozen=True):
    """A row of GPUs.

    Attributes:
        part: What a GPU is here, if it isn't a whole one.
        about: The accelerators of a node, or how many nodes an accelerator has.
        cells: How many are in each state, and all together.
        line: How many servers wait in line for it; "" if nobody can tell.
    """

    name: str
    part: str
    about: str
    cells: tuple[int, ...]
    line: int | str = 0

    @property
    def bars(self) -> Iterator[tuple[str, float, float]]:
        """Yield the states that it has, where each begins, and how wide it is, in percent."""
        begin, every = 0, self.cells[-1]
        for state, amount in zip(Held._fields, self.cells, strict=False):
            if amount:
                yield state, 100 * begin / every, 100 * amount / every
            begin += amount


class Column(msgspec.Struct, frozen=True):
    """A column by which servers can be sorted; *address* does so."""

    label: str
    address: str
    is_sorted: bool


class ServerRow(msgspec.Struct, frozen=True):
    """A server; *stop* is the address that stops it, "" if it starts, or for who may not."""

    owner: str
    server: str
    accelerator: str
    node: str
    since: str
    used: str
    use: str
    stop: str


class HoldersView(msgspec.Struct, frozen=True):
    """One page of servers; *before* and *after* are the addresses of the next ones, or ""."""

    columns: tuple[Column, ...]
    rows: tuple[ServerRow, ...]
    said: str
    query: Query
    before: str = ""
    after: str = ""


class ForAll(msgspec.Struct, frozen=True):
    """What everybody may see: no name of a person, a server, a group or a node."""

    said: tuple[str, ...]
    states: Mapping[str, str]
    accelerators: tuple[GpuRow, ...]


class ForAdministrators(msgspec.Struct, frozen=True):
    """What only those see who may see whose servers run."""

    refusals: tuple[tuple[str, int], ...]
    nodes: tuple[GpuRow, ...]
    shares: tuple[tuple[str, str, str, str], ...]
    servers: HoldersView


def states() -> dict[str, str]:
    """Name the states of `Held`, and all together."""
    return {
        "free": _("Free"),
        "ours": _("Servers here"),
        "others": _("Other pods"),
        "reserved": _("Starting"),
        "line": _("Kept for the line"),
        "away": _("Unavailable"),
        "all": _("All"),
    }


def accelerators(
    found: Iterable[AcceleratorGpus], names: Mapping[str, str], waiting: Mapping[str, int]
) -> tuple[GpuRow, ...]:
    """Return a row for each accelerator."""
    found = tuple(found)
    # Of a profile, only the resource is known, and several accelerators may have it.
    nobody = "" if any(map(names_resource, waiting.keys() - {it.key for it in found})) else 0
    return tuple(
        GpuRow(
            names.get(it.key, it.key),
            _part(it.part),
            str(it.nodes),
            (*it.held, sum(it.held)),
            waiting.get(it.key, nobody),
        )
        for it in found
    )


def node(it: NodeGpus, names: Mapping[str, str]) -> GpuRow:
    """Return the row of a node."""
    about = ", ".join(names.get(key, key) for key in it.accelerators) or it.resource
    return GpuRow(it.node, _part(it.part), about, (*it.held, sum(it.held)))


def _part(part: str) -> str:
    return {"slice": _("slices"), "share": _("shares")}.get(part, "")


def said(line: int, health: Health) -> tuple[str, ...]:
    """Say what holds for all figures."""
    told = []
    if isinstance(health, Stale):
        age = words.duration(int(health.age))
        text = _("The hub can't read the cluster. The figures are {time} old.")
        told.append(text.format(time=age))
    elif not isinstance(health, Live):
        told.append(_("The hub can't read the cluster right now."))
    if line:
        text = ngettext("{count} server waits in line.", "{count} servers wait in line.", line)
        told.append(text.format(count=line))
    return tuple(told)


def shares(
    policies: object, accounts: Accounts, database: Any, names: Mapping[str, str]
) -> Iterator[tuple[str, str, str, str]]:
    """Yield each group that a policy names with the policy, what the group uses, and its limit.

    What a function would say depends on each server, so it has none.
    """
    for policy in policies.policies if isinstance(policies, Policies) else ():
        limits = [it for it in policy.limits if it.per is Per.GROUP]
        for group in sorted(policy.people.groups.plain) if limits else ():
            members = accounts.memberships.ids(database, policy, group)
            share = accounts.usage.share(policy, group, members)
            for it in limits:
                used = policy_figure(it.measure, share.used(it.measure, _NO_SERVER))
                yield group, policy.name, used, amount_of(it.measure, it.most, names)


def servers(
    found: list[Holder], query: Query, page: str, now: datetime, *, stops: bool
) -> HoldersView:
    """Return the page that *query* asks for; *page* is the address without it.

    With *stops*, each has a button that stops it; the hub stops none that it still starts.
    """
    chosen = query.chosen(found)
    last = max(1, -(-len(chosen) // PAGE))
    query = msgspec.structs.replace(query, page=min(query.page, last))
    first = (query.page - 1) * PAGE
    shown = chosen[first : first + PAGE]

    def at(**changed: object) -> str:
        return msgspec.structs.replace(query, **changed).address(page)

    text = _("{first} to {last} of {count}") if shown else _("No servers found.")
    numbers = {"first": first + 1, "last": first + len(shown), "count": len(chosen)}
    labels = (_("Owner"), _("Accelerator"), _("Node"), _("Running for"), _("Last used"))
    return HoldersView(
        tuple(
            Column(label, at(order=order, page=1), order == query.order)
            for order, label in zip(ORDERS, labels, strict=True)
        ),
        tuple(_server(it, now, f"{page}/stop" if stops else "") for it in shown),
        text.format(**numbers),
        query,
        at(page=query.page - 1) if query.page > 1 else "",
        at(page=query.page + 1) if query.page < last else "",
    )


def _server(it: Holder, now: datetime, stop: str) -> ServerRow:
    used = words.duration(_seconds(it.used, now)) if it.used else ""
    not_yet = _("in the queue") if it.is_queued else _("starting")
    return ServerRow(
        it.owner,
        it.server,
        f"{it.gpus} × {it.accelerator}",
        it.node,
        words.duration(_seconds(it.since, now)) if it.since else not_yet,
        _("{time} ago").format(time=used) if used else "",
        _use(it.use),
        f"{stop}/{path_of(it.owner, it.server)}" if stop and not it.is_starting else "",
    )


def _use(use: GPUUse | None) -> str:
    if use is None:
        return ""
    text = _("up to {percent} % in {time}") if use.is_used else _("unused for {time}")
    percent, time = round(100 * use.used), words.duration(int(use.seconds))
    return text.format(percent=percent, time=time)


def _seconds(since: datetime, now: datetime) -> int:
    return max(0, int((now - since).total_seconds()))
