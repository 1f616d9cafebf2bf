"""Whether the servers of a namespace can be counted, and if not, why."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from gpuspawner.cluster.health import Reading, Stale
from gpuspawner.cluster.retries import Backoff
from gpuspawner.cluster.wakeups import Contact
from gpuspawner.policies.accounts import Accounts
from gpuspawner.policies.charges import Charge
from gpuspawner.policies.pod_owners import AsAnnotated, Claims
from gpuspawner.reservations.reservations import LEFT_SECONDS
from tests.unit.makers.clocks import Clock
from tests.unit.makers.policy_accounts import accounts_of
from tests.unit.makers.policy_pods import container, plain
from tests.unit.makers.policy_worlds import GPUS
from tests.unit.makers.scripted import ScriptedServer, Step, event, failure, page, watch
from tests.waiting import UNIT_PATIENCE as PATIENCE

KEY = ("jhub", "jupyter-ann")


@asynccontextmanager
async def reading(
    *script: Step, namespace: str = "jhub", contact: Contact | None = None
) -> AsyncIterator[Accounts]:
    """Accounts that read the servers of a scripted API server."""
    server = ScriptedServer(pods=list(script))
    async with server.serving():
        accounts = accounts_of(server, namespace, contact=contact)
        accounts.ledger.claims = AsAnnotated(namespace)
        accounts.following.start()
        try:
            await accounts.following.live(PATIENCE)
            yield accounts
        finally:
            await accounts.following.stop()


def start(accounts: Accounts) -> None:
    """Start a server of four GPUs, whose pod isn't shown yet."""
    accounts.reservations.charge(KEY, Charge(frozenset({"ann"}), "", {GPUS: 4}))
    accounts.reservations.send(KEY)
    accounts.reservations.end(KEY)


def gpus(accounts: Accounts) -> object:
    found = accounts.usage.of_owner({"ann"}).values()
    return sum(charge.of(GPUS) for charges in found for charge in charges)


async def test_pods_are_read_again_as_soon_as_the_server_is_back_for_others(monkeypatch) -> None:
    monkeypatch.setattr(Backoff, "before_retry", lambda *_: PATIENCE * 10)
    contact = Contact()
    async with reading(failure(503), page(plain()), watch(hold=True), contact=contact) as accounts:
        assert "503" in accounts.trouble()

        contact.wake()

        while accounts.trouble():
            assert await accounts.following.changed(PATIENCE)


async def test_changes_that_the_watch_shows_count() -> None:
    added = event("ADDED", plain(server="b"))
    async with reading(page(plain()), watch(added, hold=True)) as accounts:
        while gpus(accounts) != 2:
            assert await accounts.following.changed(PATIENCE)
        assert accounts.trouble() == ""


def gpus_of(accounts: Accounts, key: tuple[str, str]) -> list[object]:
    """What the pod of a name takes, and what its start is charged."""
    return [it.of(GPUS) for it in accounts.usage.of_owner({"ann"}).get(key, ())]


async def test_a_charge_whose_pod_never_comes_ends_without_any_change(monkeypatch) -> None:
    monkeypatch.setattr("gpuspawner.reservations.reservations.time", clock := Clock())
    async with reading(page(), watch(hold=True)) as accounts:
        start(accounts)
        clock.now += LEFT_SECONDS + 1

        assert accounts.trouble() == ""
        assert gpus(accounts) == 0


async def test_a_charge_outlasts_a_watch_that_has_broken_without_a_word(monkeypatch) -> None:
    """A firewall may drop a connection, and tell neither side."""
    clock = Clock(time.monotonic())
    for module in ("reservations.reservations", "cluster.health"):
        monkeypatch.setattr(f"gpuspawner.{module}.time", clock)
    async with reading(page(), watch(hold=True)) as accounts:
        start(accounts)
        while accounts.trouble() == "":
            assert gpus(accounts) == 4
            clock.now += 1

        assert "has fallen silent" in accounts.trouble()


async def test_a_list_in_pages_ends_no_charge_before_it_has_shown_all_pods(monkeypatch) -> None:
    """The connection is lost right after a start, for longer than a charge lasts."""
    monkeypatch.setattr("gpuspawner.reservations.reservations.time", clock := Clock())
    lost = asyncio.Event()

    async def breaks(request):
        await lost.wait()
        return await failure(410, "Expired")(request)

    pages = page(plain("bob"), then="more"), page(plain(name="jupyter-ann"))
    async with reading(page(), breaks, *pages, watch(hold=True)) as accounts:
        accounts.ledger.claims = Claims("jhub", accounts.reservations.sent)
        start(accounts)
        clock.now += LEFT_SECONDS + 1
        lost.set()

        while gpus_of(accounts, KEY) != [1]:
            assert await accounts.following.changed(PATIENCE)
        assert accounts.trouble() == ""


@pytest.mark.parametrize(("status", "why"), [(403, "pods is forbidden"), (500, "etcd is away")])
async def test_pods_that_cannot_be_read_cannot_be_counted(status, why) -> None:
    async with reading(*[failure(status, why)] * 1000) as accounts:
        assert accounts.trouble().startswith("the servers' pods can't be read: ")
        assert why in accounts.trouble()


@pytest.mark.parametrize(
    ("health", "why"),
    [
        (Reading(7.0), "the first list isn't complete yet"),
        (Stale(12.4, "a watch broke"), "the last answer is 12 s old: a watch broke"),
    ],
)
def test_pods_that_may_have_changed_cannot_be_counted(health, why) -> None:
    accounts = accounts_of()
    accounts.following.health = lambda: health  # type: ignore[method-assign]

    assert accounts.trouble() == f"the servers' pods can't be read: {why}"


@pytest.mark.parametrize(
    "broken", [plain(name="odd", containers=7), plain(name="odd", containers=[container(gpu="x")])]
)
async def test_one_pod_that_cannot_be_understood_is_named(broken) -> None:
    async with reading(page(plain(), broken), watch(hold=True)) as accounts:
        assert accounts.trouble() == "nobody can tell what the pod jhub/odd takes"


@pytest.mark.parametrize(
    ("namespace", "path"), [("jhub", "/api/v1/namespaces/jhub/pods"), ("", "/api/v1/pods")]
)
async def test_only_the_hub_s_namespace_is_read_unless_each_user_has_one(namespace, path) -> None:
    asked = []

    async def listed(request):
        asked.append(request.path)
        return await page()(request)

    async with reading(listed, watch(hold=True), namespace=namespace):
        assert asked == [path]
