"""A pod is the server that the hub knows it to be, whatever anybody writes into it."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import text

from gpuspawner.cluster.health import Health, Live, Reading
from gpuspawner.compat.people import Person, person
from gpuspawner.kube.servers import GRANT, SERVER, USER
from gpuspawner.offers.types import Accelerator
from gpuspawner.policies.charges import Charge, Meter
from gpuspawner.policies.policies import Measure, What
from gpuspawner.reservations.granted import STORED, Granted
from gpuspawner.scheduling import Rules
from tests.unit.makers.hub_database import HubDatabase
from tests.unit.makers.policy_accounts import accounts_of
from tests.unit.makers.policy_pods import GPU, annotations_of, container, labels_of, server_pod
from tests.unit.makers.policy_worlds import GPUS

SMALL, LARGE = (Accelerator(key, key, GPU) for key in ("small", "large"))
METER = Meter(Rules.of_version("1.36"), (SMALL, LARGE))
PLACE = {"pod_name": "jupyter-ann", "namespace": "jhub"}
KEY = ("jhub", "jupyter-ann")


class Hub:
    """A hub's database, and what the hub counts by it.

    Attributes:
        health: How far the list of pods is, when the hub begins.
    """

    def __init__(self, database: HubDatabase) -> None:
        self.database = database
        self.accounts = accounts_of(meter=METER)
        self.health: Health = Reading(0.1)
        self.accounts.following.health = lambda: self.health  # type: ignore[method-assign]
        self.usage, self.ledger = self.accounts.usage, self.accounts.ledger

    def begin(self) -> None:
        """Count by the database, as a hub does that begins."""
        nobody = Person(0, "", "", frozenset(), frozenset())
        self.accounts.owners(self.database.session, nobody)

    def show(self, name: str = "jupyter-ann", *, namespace: str = "jhub", **metadata: Any) -> None:
        """Let a pod with two GPUs exist."""
        where = {"name": name, "namespace": namespace, **metadata}
        self.ledger.put(server_pod(metadata=where, containers=[container(gpu=2)]))

    def hide(self, name: str = "jupyter-ann") -> None:
        """Let it be gone."""
        self.ledger.remove("ServerPod", "jhub", name)

    def judge(self, user: Any, **fields: Any) -> None:
        """Let a start of a user's server be judged and granted."""
        self.accounts.reservations.charge(KEY, Charge(frozenset({user.id}), **fields))

    def send(self, user: Any, **fields: Any) -> None:
        """Let a start send its pod."""
        self.judge(user, **fields)
        self.accounts.reservations.send(KEY)

    def end(self) -> None:
        """Let the start be over, and everything that is known of pods be looked at."""
        self.accounts.reservations.end(KEY)
        self.accounts.reservations.look()

    def charges(self, user: Any) -> list[Charge]:
        found = self.usage.of_owner(self.ledger.claims.owners(person(user))).values()
        return [it for charges in found for it in charges]

    def counted(self, user: Any) -> int:
        return sum(int(it.of(GPUS)) for it in self.charges(user))


@pytest.fixture
def hub() -> Hub:
    return Hub(HubDatabase())


@pytest.fixture
def ann(hub: Hub) -> Any:
    return hub.database.user("ann", "course")


def test_what_anybody_writes_into_a_pod_uses_up_nobody_s_limit(hub, ann) -> None:
    hub.database.server(ann, **PLACE)
    forged = annotations_of("ann", grant={"policies": ["course"], "groups": ["course"]})
    hub.show("miner", annotations=forged)
    hub.show(namespace="mallory", annotations=forged)
    hub.begin()

    assert hub.counted(ann) == 0
    assert not hub.usage.of_group("course", {ann.id})
    hub.show()
    assert hub.counted(ann) == 2


def test_nothing_that_is_written_into_a_server_s_pod_changes_what_counts(hub, ann) -> None:
    granted = Granted("large", ("course",), ("course",))
    hub.database.server(ann, "train", **PLACE, gpuspawner={STORED: granted.written()})
    hub.begin()
    hub.show()
    before = hub.charges(ann)

    for edit in (
        {},
        {USER: "bob", SERVER: "other"},
        {GRANT: "{}"},
        {GRANT: '{"accelerator":"small","policies":["p"],"groups":["staff"]}'},
    ):
        for labels in ({}, labels_of("bob", "other")):
            hub.show(annotations=edit, labels=labels)
            assert hub.charges(ann) == before

    [charge] = before
    assert (charge.server, charge.groups, charge.of(GPUS)) == ("train", {"course"}, 2)
    assert charge.of(Measure(What.GPUS, "large")) == 2
    assert charge.of(Measure(What.GPUS, "small")) == 0


@pytest.mark.parametrize(
    ("name", "state", "namespace"),
    [
        ("", {**PLACE, "dns_name": "x", "kubespawner_version": "7.0.0"}, "jhub"),
        ("train", {**PLACE, "namespace": "project-x"}, "project-x"),
        ("", {"pod_name": "jupyter-ann"}, "jhub"),
        ("", {**PLACE, "gpuspawner": {"granted": ["not ours"], "began": 7}}, "jhub"),
        ("", {**PLACE, "gpuspawner": 3}, "jhub"),
    ],
    ids=["of KubeSpawner 7", "elsewhere", "of KubeSpawner 4", "of another version", "broken"],
)
def test_a_server_that_kubespawner_has_started_is_known_by_what_it_has_stored(
    hub, ann, name, state, namespace
) -> None:
    hub.database.server(ann, name, **state)
    hub.show(namespace=namespace)
    hub.begin()

    [charge] = hub.charges(ann)
    assert (charge.server, charge.of(GPUS), charge.groups) == (name, 2, frozenset())


def test_a_renamed_user_has_the_same_servers_and_who_has_the_name_now_has_none(hub, ann) -> None:
    hub.database.server(ann, **PLACE)
    hub.begin()
    hub.show()

    ann.name = "anna"
    hub.database.session.commit()
    other = hub.database.user("ann")

    again = Hub(hub.database)
    again.begin()
    again.show()
    assert [it.counted(ann) for it in (hub, again)] == [2, 2]
    assert [it.counted(other) for it in (hub, again)] == [0, 0]


def test_a_user_who_is_created_anew_has_nothing_of_the_one_who_was_deleted(hub, ann) -> None:
    hub.database.user("bob")  # SQLite uses the last id again
    hub.database.server(ann, **PLACE)
    hub.begin()
    hub.show()
    hub.database.session.delete(ann)
    hub.database.session.commit()

    assert hub.counted(hub.database.user("ann")) == 0


def test_a_pod_that_has_outlived_its_server_is_known_by_its_uid_and_not_by_its_name(
    hub, ann
) -> None:
    noted = {STORED: Granted(pod="1").written()}
    hub.database.server(ann, runs=False, **PLACE, gpuspawner=noted)
    hub.database.server(ann, "b", runs=False, pod_name="jupyter-ann--b", namespace="jhub")
    hub.begin()

    hub.show(uid="2")
    hub.show("jupyter-ann--b", uid="3")
    assert hub.counted(ann) == 0
    hub.show("whatever", uid="1")  # its owner was renamed before the hub forgot it
    assert hub.counted(ann) == 2


def test_what_the_hub_sends_counts_for_whom_it_was_sent_until_it_is_gone(hub, ann) -> None:
    hub.begin()
    hub.send(ann, server="train", policies=frozenset("p"), groups=frozenset({"course"}))
    hub.show(annotations={}, labels={})
    hub.end()

    hub.show(annotations=annotations_of("bob"), labels=labels_of("bob"))
    [charge] = hub.charges(ann)
    assert (charge.server, charge.groups, charge.of(GPUS)) == ("train", {"course"}, 2)

    hub.hide()
    hub.show(uid="of another one")
    assert hub.counted(ann) == 0


def test_a_pod_that_was_replaced_while_no_watch_told_is_forgotten(hub, ann) -> None:
    hub.begin()
    for uid in ("1", "2"):
        hub.send(ann)
        hub.show(uid=uid)
        hub.end()

    assert hub.ledger.claims.pods.keys() == {"2"}
    assert hub.counted(ann) == 2


@pytest.mark.parametrize("is_known", [True, False])
def test_an_older_pod_that_goes_late_takes_nothing_from_the_one_that_was_sent(
    hub, ann, is_known
) -> None:
    """The hub may know nothing of the older one: some hub has stored nothing of it."""
    if is_known:
        hub.database.server(ann, **PLACE)
    hub.begin()
    hub.show(uid="1")
    hub.send(ann)
    hub.show(uid="1")  # it is being deleted
    hub.end()
    hub.hide()
    hub.show(uid="2")
    hub.accounts.reservations.look()

    assert hub.counted(ann) == 2


def test_each_pod_that_a_start_sends_counts(hub, ann) -> None:
    """Created, but answered too late: KubeSpawner deletes it, and sends it again."""
    hub.begin()
    hub.send(ann)
    hub.show(uid="1")
    hub.hide()
    hub.show(uid="2")
    hub.end()

    assert hub.counted(ann) == 2


def test_a_start_that_has_sent_no_pod_takes_no_pod_over(hub) -> None:
    """It is refused or waits in line; anna was ann, and mallory knows the name."""
    anna = hub.database.user("anna")
    hub.database.server(anna, **PLACE)
    hub.begin()
    hub.show(uid="of anna")
    ann = hub.database.user("ann")
    hub.judge(ann)
    hub.show(uid="of anna")
    hub.end()
    hub.show(uid="of anna")
    assert (hub.counted(anna), hub.counted(ann)) == (2, 0)

    hub.hide()
    hub.judge(ann)
    hub.show(uid="of mallory", annotations=annotations_of("ann"))
    hub.end()
    assert hub.counted(ann) == 0


@pytest.mark.parametrize("noted", [Granted(), Granted(pod="1")], ids=["no uid", "a uid"])
def test_a_server_whose_pod_has_gone_with_the_last_hub_claims_no_later_one(hub, ann, noted) -> None:
    hub.health = Reading(0.1) if noted.pod else Live(0.1)
    hub.database.server(ann, **PLACE, gpuspawner={STORED: noted.written()})
    hub.begin()
    hub.show(uid="2", annotations=annotations_of("ann"))

    assert hub.counted(ann) == 0


def test_what_an_earlier_hub_has_left_counts_if_a_list_shows_it_after_the_database(
    hub, ann
) -> None:
    hub.database.server(ann, **PLACE)
    hub.begin()
    hub.judge(ann)  # its next start comes first, and is refused
    hub.accounts.reservations.end(KEY)
    hub.show(uid="1")
    hub.accounts.reservations.look()
    hub.accounts.reservations.look()

    assert hub.counted(ann) == 2


def test_a_server_that_started_while_the_hub_was_upgraded_counts_once_the_hub_sees_its_pod(
    hub,
    ann,
) -> None:
    """KubeSpawner without gpuspawner stores a state only once the server is up."""
    hub.database.server(ann)
    hub.begin()
    hub.show(uid="1")

    hub.ledger.know(KEY, Charge(frozenset({ann.id})), "1")

    assert hub.counted(ann) == 2


@pytest.mark.parametrize(
    "stored", ["", "null", "{", "[]", '"x"', '{"pod_name": 7}', "[" * 100_000, '{"gpuspawner":']
)
def test_a_state_that_cannot_be_read_hides_no_other_server(hub, ann, stored) -> None:
    bob = hub.database.user("bob")
    hub.database.server(bob, pod_name="jupyter-bob")
    hub.database.server(ann, **PLACE)
    change = text("UPDATE spawners SET state = :stored WHERE user_id = :bob")
    hub.database.session.execute(change, {"stored": stored, "bob": bob.id})
    hub.database.session.commit()
    hub.show()
    hub.begin()

    assert hub.counted(ann) == 2


def test_the_database_is_read_once(hub) -> None:
    hub.begin()
    hub.database.server(hub.database.user("ann"), **PLACE)
    hub.begin()
    hub.show()

    assert not hub.usage.of_owner({1})
