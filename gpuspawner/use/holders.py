"""The servers of this hub that have GPUs: whose they are, where they run, and since when."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import msgspec

from gpuspawner.cluster.background import Turn
from gpuspawner.compat.stored_servers import RunningServer, running_servers
from gpuspawner.kube.kueue import is_gated
from gpuspawner.kube.meta import Key
from gpuspawner.runtime import Runtime
from gpuspawner.use.idle_servers import GPUUse
from gpuspawner.use.live_census import LiveCensus

_NEVER = datetime.max.replace(tzinfo=UTC)


class Holder(msgspec.Struct, gc=False, frozen=True):
    """A server that has GPUs.

    Attributes:
        accelerator: Its display name, or its resource.
        gpus: How many devices it has, as the census counts them: slices and shares, not by weight.
        node: "" until it has one.
        since: Since when it runs; None before that.
        used: When somebody used it last; None if nobody has.
        use: What is known of the use of its GPUs; None if nothing is.
        is_queued: Whether a queue of Kueue holds it back.
        is_starting: Whether the hub still starts it: then it can't be stopped here.
    """

    owner: str
    server: str
    accelerator: str
    gpus: int
    node: str
    since: datetime | None
    used: datetime | None
    use: GPUUse | None = None
    is_queued: bool = False
    is_starting: bool = False


async def holders(
    running: Runtime,
    database: Any,
    turn: Turn,
    use_of: Callable[[Key], GPUUse | None],
    census: LiveCensus,
) -> list[Holder]:
    """Find all servers that have GPUs, with what the last census says of them."""
    if (accounts := running.accounts) is None:
        return []
    known: dict[tuple[int | str, str], RunningServer] = {}
    for some in running_servers(database):
        known.update({(it.owner_id, it.server): it for it in some})
        await turn.end_if_long()
    found: list[Holder] = []
    names, bound, offered = running.display_names, running.view.state.pods, running.offers
    for key, charge in list(accounts.usage.pods.items()):
        await turn.end_if_long()
        of = next((known.get((it, charge.server)) for it in charge.owners), None)
        pod = accounts.ledger.pods.get(key)
        if of is None or pod is None or not charge.has_gpus:
            continue
        there = bound.find("/".join(key))
        accelerator = census.counted_as(key, charge.kind(offered.accelerators))
        found.append(
            Holder(
                of.owner,
                of.server,
                names.get(accelerator, accelerator),
                accounts.ledger.devices(pod),
                there.node if there is not None else "",
                pod.runs_since,
                of.used.replace(tzinfo=UTC) if of.used is not None else None,
                use_of(key),
                is_gated(pod.spec.scheduling_gates),
                key in census.starting,
            )
        )
    return found


# What a person has asked to see of them.

_ORDERS: Mapping[str, Callable[[Holder], Any]] = {
    "owner": lambda it: (it.owner, it.server),
    "accelerator": lambda it: (it.accelerator, -it.gpus, it.node),
    "node": lambda it: (it.node, it.owner),
    "since": lambda it: it.since or _NEVER,
    "used": lambda it: it.used or _NEVER,
}
ORDERS = tuple(_ORDERS)
"""The columns by which they can be sorted, the default first."""
PAGE = 100
_LONGEST = 200


class Query(msgspec.Struct, frozen=True):
    """Which servers to show, and in which order.

    Attributes:
        text: A part of any name; "" for all.
        order: One of `ORDERS`.
        page: From 1 on.
    """

    text: str = ""
    order: str = ORDERS[0]
    page: int = 1

    @classmethod
    def read(cls, given: Callable[[str, str], str]) -> "Query":
        """Read it from the arguments of a request; what makes no sense counts as left out."""
        order, page = given("order", ""), given("page", "")
        return cls(
            given("text", "").strip()[:_LONGEST],
            order if order in ORDERS else ORDERS[0],
            max(1, int(page)) if page.isascii() and page.isdecimal() and len(page) < 7 else 1,
        )

    @property
    def fields(self) -> dict[str, str]:
        """The fields of a form or an address that asks for this, without what is as usual."""
        page = "" if self.page == 1 else str(self.page)
        order = "" if self.order == ORDERS[0] else self.order
        named = {"text": self.text, "order": order, "page": page}
        return {name: value for name, value in named.items() if value}

    def address(self, base: str) -> str:
        """Return the address that asks the page at *base* for this."""
        fields = urlencode(self.fields)
        return f"{base}?{fields}" if fields else base

    def chosen(self, found: Iterable[Holder]) -> list[Holder]:
        """Return all that it selects, in its order."""
        text = self.text.casefold()
        selected = (it for it in found if not text or text in _names(it).casefold())
        return sorted(selected, key=_ORDERS[self.order])


def _names(it: Holder) -> str:
    return f"{it.owner}\n{it.server}\n{it.accelerator}\n{it.node}"
