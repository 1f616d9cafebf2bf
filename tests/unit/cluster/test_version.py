"""The scheduling rules are settled before the first object is read."""

from functools import partial

import pytest

from gpuspawner.cluster.client import RequestError
from gpuspawner.cluster.health import Live, Unreachable
from gpuspawner.cluster.kinds import NODES
from gpuspawner.cluster.view import ClusterView, server_version
from gpuspawner.scheduling import Rules
from tests.unit.cluster.scripted import FAST, ScriptedServer, failure, page, raw, watch
from tests.waiting import PATIENCE

VERSION_1_30 = raw(b'{"major": "1", "minor": "30", "gitVersion": "v1.30.14"}')

rules_of = partial(Rules.of_version, schedulers=("user-scheduler",))


async def asked(*script: object) -> tuple[str, list[RequestError]]:
    lost: list[RequestError] = []
    server = ScriptedServer(version=list(script))
    async with server.serving() as client:
        return await server_version(client, FAST, lost.append), lost


async def test_the_servers_version_is_read_as_it_writes_it() -> None:
    assert await asked(VERSION_1_30) == ("v1.30.14", [])


async def test_a_fault_is_reported_and_the_question_is_asked_again() -> None:
    version, lost = await asked(failure(401), failure(503), VERSION_1_30)

    assert version == "v1.30.14"
    assert [error.status for error in lost] == [401, 503]


@pytest.mark.parametrize("answer", [failure(403), failure(404), raw(b"<html>"), raw(b"[]")])
async def test_a_server_without_a_version_counts_as_the_newest(answer: object) -> None:
    version, lost = await asked(answer)

    assert (version, lost) == ("", [])
    assert Rules.of_version(version) == Rules.of_version("v1.37.0")


async def test_the_view_is_unreachable_until_it_knows_the_servers_rules() -> None:
    faults = [failure(503)] * 3
    server = ScriptedServer(version=[*faults, VERSION_1_30], nodes=[page(), watch(hold=True)])
    async with server.serving():
        view = ClusterView(server.configuration, (NODES,), FAST, rules=rules_of)
        view.start()
        try:
            await view.changed(3)
            assert isinstance(view.health(), Unreachable)
            while not isinstance(view.health(), Live):
                assert await view.changed(3)
            assert view.state.rules == rules_of("v1.30.14")
        finally:
            await view.stop()


async def test_given_rules_are_not_asked_for() -> None:
    server = ScriptedServer(nodes=[page(), watch(hold=True)])
    async with server.serving():
        view = ClusterView(server.configuration, (NODES,), FAST, rules=rules_of("1.30"))
        view.start()
        try:
            assert await view.first_list(PATIENCE)
            assert view.state.rules == rules_of("1.30")
        finally:
            await view.stop()
