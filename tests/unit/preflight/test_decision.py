"""A home in another place than the room for its server, and what is said of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from gpuspawner.messages import OnForm, button, refusal
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.types import Accelerator
from gpuspawner.offers.user_options import GPURequest
from gpuspawner.preflight.decider import OLDER_POD
from gpuspawner.preflight.decision import Apart, Decision, HeldBy, Reason, Refuse, Start
from gpuspawner.preflight.preflight import Preflight
from gpuspawner.preflight.proposed_pod import Proposal
from tests.unit.makers.storage import HOME, STORAGE_KINDS
from tests.unit.makers.worlds import (
    A100,
    NAMESPACE,
    Instead,
    StillView,
    labelled,
    node,
    of_pool,
    pod,
    proposal,
)

Plain = dict[str, Any]
Objects = list[tuple[str, Plain]]


def with_home(gpus: int = 1, **spec: object) -> Proposal:
    return proposal("a", gpus, volumes=[HOME], **spec)


ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


def home_at(key: str, value: str) -> list[tuple[str, Plain]]:
    """Return a bound claim, and its volume, which only nodes with this label reach."""
    named = {"name": "claim-a", "namespace": NAMESPACE}
    bound: Plain = {
        "metadata": {**named, "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": "disk", "accessModes": ["ReadWriteOnce"]},
    }
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
    affinity = {"required": {"nodeSelectorTerms": [term]}}
    volume: Plain = {"metadata": {"name": "disk"}, "spec": {"nodeAffinity": affinity}}
    return [("PersistentVolumeClaim", bound), ("PersistentVolume", volume)]


def machine(name: str, gpus: int, zone: str, **labels: str) -> tuple[str, Plain]:
    return "Node", labelled(node(name, gpus), {ZONE: zone, HOSTNAME: name, **labels})


def on(*objects: tuple[str, Plain]) -> Preflight:
    view = StillView(*objects)
    for kind in STORAGE_KINDS:
        view.state.mark_known(kind)
    return Preflight(view)


def judged(what: Proposal, *objects: tuple[str, Plain]) -> tuple[Reason, Apart | None]:
    decision = on(*objects).decider.check(what)
    assert isinstance(decision, Refuse)
    return decision.reason, decision.apart


def test_a_home_in_another_zone_than_the_gpus_says_where_both_are() -> None:
    cpu, gpu = machine("c", 0, "a", gpu="none"), machine("g", 1, "b")

    assert judged(with_home(), cpu, gpu, *home_at(ZONE, "a")) == (
        Reason.IMPOSSIBLE,
        Apart(("a",), ("b",), are_zones=True, is_free=True),
    )
    in_use = "Pod", pod("x", 1, on="g")
    assert judged(with_home(), cpu, gpu, in_use, *home_at(ZONE, "a")) == (
        Reason.IMPOSSIBLE,
        Apart(("a",), ("b",), are_zones=True, is_free=False),
    )


def test_a_home_on_a_full_machine_says_so_while_another_machine_has_free_gpus() -> None:
    full, free = machine("m", 1, "a"), machine("n", 4, "a")

    assert judged(
        with_home(), full, free, ("Pod", pod("x", 1, on="m")), *home_at(HOSTNAME, "m")
    ) == (
        Reason.BUSY,
        Apart(("m",), ("n",), are_zones=False, is_free=True),
    )


@pytest.mark.parametrize("mode", ["Immediate", "WaitForFirstConsumer"])
def test_a_first_home_is_where_its_storage_class_makes_volumes(mode) -> None:
    expressions = [{"key": ZONE, "values": ["a"]}]
    class_ = {
        "metadata": {"name": "disks"},
        "provisioner": "ebs.csi.aws.com",
        "volumeBindingMode": mode,
        "allowedTopologies": [{"matchLabelExpressions": expressions}],
    }
    first: Plain = {
        "metadata": {"name": "claim-a", "namespace": NAMESPACE},
        "spec": {"storageClassName": "disks", "accessModes": ["ReadWriteOnce"]},
    }
    what = replace(with_home(), new_claims=(first,))
    cpu, gpu = machine("c", 0, "a", gpu="none"), machine("g", 1, "b")

    assert judged(what, cpu, gpu, ("StorageClass", class_)) == (
        Reason.IMPOSSIBLE,
        Apart(("a",), ("b",), are_zones=True, is_free=True),
    )


def test_a_home_that_no_node_reaches_is_apart_from_every_node() -> None:
    assert judged(with_home(), machine("g", 1, "b"), *home_at(ZONE, "gone")) == (
        Reason.IMPOSSIBLE,
        Apart((), ("g",), are_zones=False, is_free=True),
    )


@pytest.mark.parametrize(
    ("what", "objects"),
    [
        (with_home(), [machine("m", 1, "a"), ("Pod", pod("x", 1, on="m"))]),
        (with_home(gpus=2), [machine("m", 1, "a"), machine("n", 1, "b")]),
        (proposal("a", 2), [machine("m", 1, "a"), machine("n", 1, "b")]),
    ],
    ids=["the GPU beside it is in use", "nowhere are so many", "it has no home"],
)
def test_a_home_is_not_blamed_if_no_other_place_would_help(what, objects) -> None:
    assert judged(what, *objects, *home_at(ZONE, "a"))[1] is None


def test_a_home_in_use_on_a_machine_with_room_is_not_called_elsewhere() -> None:
    (kind, home), disk = home_at(ZONE, "a")
    home["spec"]["accessModes"] = ["ReadWriteOncePod"]
    holder = "Pod", pod("x", 1, on="m", volumes=[HOME])

    assert judged(with_home(), machine("m", 2, "a"), holder, (kind, home), disk) == (
        Reason.BUSY,
        None,
    )


def test_a_disk_in_use_on_the_machine_with_room_at_home_is_not_called_elsewhere() -> None:
    disk: Plain = {"name": "data", "gcePersistentDisk": {"pdName": "data"}}
    holder = "Pod", pod("x", 1, on="m", volumes=[disk])
    what = proposal("a", 1, volumes=[HOME, disk])

    assert judged(what, machine("m", 2, "a"), holder, *home_at(ZONE, "a")) == (Reason.BUSY, None)


class AtHome(Instead):
    """Alternatives with the same home."""

    def variant(self, request: GPURequest) -> tuple[Grant, Plain] | None:
        made = super().variant(request)
        return made and (made[0], pod("a", request.gpus, volumes=[HOME]))


def test_buttons_start_what_fits_where_the_files_are() -> None:
    home = home_at(ZONE, "a")
    decider = on(machine("c", 0, "a", gpu="none"), machine("g", 2, "b"), *home).decider
    what = with_home(2)
    refused = decider.check(what)
    assert isinstance(refused, Refuse)

    found = decider.alternatives(what, AtHome(Offers(accelerators={"a100": A100})))
    shown = OnForm.of_refusal(structs.replace(refused, alternatives=found))

    assert [button(it).label for it in shown.alternatives] == ["Start without a GPU"]
    assert [it.text for it in shown.errors] == ["Not where your files are."]


T4 = Grant(Accelerator("t4", "T4", "nvidia.com/gpu"), 1)


SAID = {
    "There is room for 1 × T4 in zone b, but your files are in zone a.": (
        T4,
        Apart(("a",), ("b",), are_zones=True, is_free=True),
    ),
    "There can be room for 1 × T4 only in zones b and c, but your files are in zone a.": (
        T4,
        Apart(("a",), ("b", "c"), are_zones=True),
    ),
    "There is room for 1 × T4 on machine n, but your files are on machine m.": (
        T4,
        Apart(("m",), ("n",), are_zones=False, is_free=True),
    ),
    "There is room for 1 × T4 on several machines, but your files are where no machine is.": (
        T4,
        Apart((), tuple("nopq"), are_zones=False, is_free=True),
    ),
    "There is room for your server on machine n, but your files are on machine m.": (
        Grant(),
        Apart(("m",), ("n",), are_zones=False, is_free=True),
    ),
}


@pytest.mark.parametrize(("said", "facts"), SAID.items(), ids=range(len(SAID)))
def test_a_user_reads_where_the_files_are_and_where_the_gpu_is(said, facts) -> None:
    grant, where = facts
    text = refusal(Refuse(grant, Reason.IMPOSSIBLE, apart=where)).text

    assert text.startswith(f"{said} A server runs where its files are. ")


OWNER = "hub.jupyter.org/username"


def server(name: str, owner: str, gpus: int = 0, on: str = "") -> Plain:
    """Return a server with the home."""
    made = pod(name, gpus, on=on, volumes=[HOME])
    made["metadata"]["labels"] = {OWNER: owner}
    return made


def asked(*objects: tuple[str, Plain], max_nodes: int = 2) -> Decision:
    """Decide about a server of ada's with a GPU and a home that one pod can use at a time."""
    (kind, home), disk = home_at(ZONE, "a")
    home["spec"]["accessModes"] = ["ReadWriteOncePod"]
    what = replace(of_pool("a", max_nodes=max_nodes), pod=server("a", "ada", 1))
    return on(*objects, (kind, home), disk).decider.check(what)


@pytest.mark.parametrize("gpu", ["a100", "none"], ids=["present machine", "machine to come"])
@pytest.mark.parametrize(
    ("owner", "held", "said"),
    [("ada", HeldBy.OWN, "stop that server"), ("ben", HeldBy.OTHER, "try again")],
)
def test_no_machine_is_waited_for_while_only_another_server_has_the_home(
    gpu, owner, held, said
) -> None:
    holder = "Pod", server("other", owner, on="m")
    refused = asked(machine("m", 1, "a", gpu=gpu), holder)

    assert isinstance(refused, Refuse)
    assert (refused.reason, refused.held) == (Reason.BUSY, held)
    text = refusal(refused).text
    assert said in text
    assert "in use" in text
    assert [it.text for it in OnForm.of_refusal(refused).errors] == ["Your files are in use."]


def test_nobody_is_told_to_stop_a_server_that_is_stopping() -> None:
    holder = server("other", "ada", on="m")
    holder["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    refused = asked(machine("m", 1, "a"), ("Pod", holder))

    assert isinstance(refused, Refuse)
    assert refused.held is HeldBy.OTHER


def test_a_home_in_use_is_not_blamed_for_a_machine_that_could_not_take_the_server_either() -> None:
    holder = "Pod", server("other", "ada", on="m")
    full = machine("m", 1, "a"), ("Pod", pod("x", 1, on="m")), holder
    elsewhere = machine("c", 0, "a", gpu="none"), machine("m", 1, "b"), holder

    for objects in (full, elsewhere):
        refused = asked(*objects, max_nodes=1)
        assert isinstance(refused, Refuse)
        assert refused.held is None


def test_a_home_that_only_the_older_pod_of_the_server_has_refuses_nothing() -> None:
    older = "Pod", server("a", "ada", on="c")
    decision = asked(machine("c", 0, "a", gpu="none"), machine("m", 1, "a"), older)

    assert decision == Start(decision.grant, (OLDER_POD,))
