"""A home in another place than the room for its server, and what is said of it."""

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from gpuspawner.messages import OnForm, button, refusal
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.types import Accelerator
from gpuspawner.preflight.decider import OLDER_POD
from gpuspawner.preflight.decision import Apart, HeldBy, Reason, Refuse, Start
from gpuspawner.preflight.preflight import Preflight
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


def with_home(gpus=1, **spec):
    return proposal("a", gpus, volumes=[HOME], **spec)


ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


def home_at(key, value, mode="ReadWriteOnce"):
    """Return a bound claim, and its volume, which only nodes with this label reach."""
    named = {"name": "claim-a", "namespace": NAMESPACE}
    bound = {
        "metadata": {**named, "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": "disk", "accessModes": [mode]},
    }
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
    affinity = {"required": {"nodeSelectorTerms": [term]}}
    volume = {"metadata": {"name": "disk"}, "spec": {"nodeAffinity": affinity}}
    return [("PersistentVolumeClaim", bound), ("PersistentVolume", volume)]


def machine(name, gpus, zone, **labels):
    return "Node", labelled(node(name, gpus), {ZONE: zone, HOSTNAME: name, **labels})


def on(*objects):
    view = StillView(*objects)
    for kind in STORAGE_KINDS:
        view.state.mark_known(kind)
    return Preflight(view)


def judged(what, *objects):
    decision = on(*objects).decider.check(what)
    return decision.reason, decision.apart


ELSEWHERE = Apart(("a",), ("b",), are_zones=True, is_free=True)
CPU, GPUS = machine("c", 0, "a", gpu="none"), machine("g", 1, "b")


@pytest.mark.parametrize("others", [[], [("Pod", pod("x", 1, on="g"))]], ids=["free", "in use"])
def test_a_home_in_another_zone_than_the_gpus_says_where_both_are(others):
    assert judged(with_home(), CPU, GPUS, *others, *home_at(ZONE, "a")) == (
        Reason.IMPOSSIBLE,
        structs.replace(ELSEWHERE, is_free=not others),
    )


def test_a_home_on_a_full_machine_says_so_while_another_machine_has_free_gpus():
    objects = machine("m", 1, "a"), machine("n", 4, "a"), ("Pod", pod("x", 1, on="m"))

    assert judged(with_home(), *objects, *home_at(HOSTNAME, "m")) == (
        Reason.BUSY,
        Apart(("m",), ("n",), are_zones=False, is_free=True),
    )


@pytest.mark.parametrize("mode", ["Immediate", "WaitForFirstConsumer"])
def test_a_first_home_is_where_its_storage_class_makes_volumes(mode):
    class_ = {
        "metadata": {"name": "disks"},
        "provisioner": "ebs.csi.aws.com",
        "volumeBindingMode": mode,
        "allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["a"]}]}],
    }
    first = {
        "metadata": {"name": "claim-a", "namespace": NAMESPACE},
        "spec": {"storageClassName": "disks", "accessModes": ["ReadWriteOnce"]},
    }
    what = replace(with_home(), new_claims=(first,))

    assert judged(what, CPU, GPUS, ("StorageClass", class_)) == (Reason.IMPOSSIBLE, ELSEWHERE)


def test_a_home_that_no_node_reaches_is_apart_from_every_node():
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
def test_a_home_is_not_blamed_if_no_other_place_would_help(what, objects):
    assert judged(what, *objects, *home_at(ZONE, "a"))[1] is None


def test_a_home_in_use_on_a_machine_with_room_is_not_called_elsewhere():
    holder = "Pod", pod("x", 1, on="m", volumes=[HOME])
    home = home_at(ZONE, "a", mode="ReadWriteOncePod")

    assert judged(with_home(), machine("m", 2, "a"), holder, *home) == (Reason.BUSY, None)


def test_a_disk_in_use_on_the_machine_with_room_at_home_is_not_called_elsewhere():
    disk = {"name": "data", "gcePersistentDisk": {"pdName": "data"}}
    holder = "Pod", pod("x", 1, on="m", volumes=[disk])
    what = proposal("a", 1, volumes=[HOME, disk])

    assert judged(what, machine("m", 2, "a"), holder, *home_at(ZONE, "a")) == (Reason.BUSY, None)


class AtHome(Instead):
    """Alternatives with the same home."""

    def variant(self, request):
        return super().variant(request)[0], pod("a", request.gpus, volumes=[HOME])


def test_buttons_start_what_fits_where_the_files_are():
    decider = on(CPU, machine("g", 2, "b"), *home_at(ZONE, "a")).decider
    refused = decider.check(with_home(2))

    found = decider.alternatives(with_home(2), AtHome(Offers(accelerators={"a100": A100})))
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
def test_a_user_reads_where_the_files_are_and_where_the_gpu_is(said, facts):
    grant, where = facts
    text = refusal(Refuse(grant, Reason.IMPOSSIBLE, apart=where)).text

    assert text.startswith(f"{said} A server runs where its files are. ")


OWNER = "hub.jupyter.org/username"


def server(name, owner, gpus=0, on=""):
    """Return a server with the home."""
    made = pod(name, gpus, on=on, volumes=[HOME])
    made["metadata"]["labels"] = {OWNER: owner}
    return made


def asked(*objects, max_nodes=2):
    """Decide about a server of ada's with a GPU and a home that one pod can use at a time."""
    what = replace(of_pool("a", max_nodes=max_nodes), pod=server("a", "ada", 1))
    return on(*objects, *home_at(ZONE, "a", mode="ReadWriteOncePod")).decider.check(what)


def held_by(*objects, max_nodes=2):
    """Return who has the home of a server that is refused."""
    decision = asked(*objects, max_nodes=max_nodes)
    return decision.held


@pytest.mark.parametrize("gpu", ["a100", "none"], ids=["present machine", "machine to come"])
@pytest.mark.parametrize(
    ("owner", "held", "said"),
    [("ada", HeldBy.OWN, "stop that server"), ("ben", HeldBy.OTHER, "try again")],
)
def test_no_machine_is_waited_for_while_only_another_server_has_the_home(gpu, owner, held, said):
    holder = "Pod", server("other", owner, on="m")
    refused = asked(machine("m", 1, "a", gpu=gpu), holder)

    assert (refused.reason, refused.held) == (Reason.BUSY, held)
    text = refusal(refused).text
    assert said in text
    assert "in use" in text
    assert [it.text for it in OnForm.of_refusal(refused).errors] == ["Your files are in use."]


def test_nobody_is_told_to_stop_a_server_that_is_stopping():
    holder = server("other", "ada", on="m")
    holder["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    assert held_by(machine("m", 1, "a"), ("Pod", holder)) is HeldBy.OTHER


HOLDER = "Pod", server("other", "ada", on="m")


@pytest.mark.parametrize(
    "objects",
    [
        [machine("m", 1, "a"), ("Pod", pod("x", 1, on="m")), HOLDER],
        [machine("c", 0, "a", gpu="none"), machine("m", 1, "b"), HOLDER],
    ],
    ids=["full", "elsewhere"],
)
def test_a_home_in_use_is_not_blamed_for_a_machine_that_could_not_take_the_server_either(objects):
    assert held_by(*objects, max_nodes=1) is None


def test_a_home_that_only_the_older_pod_of_the_server_has_refuses_nothing():
    older = "Pod", server("a", "ada", on="c")
    decision = asked(machine("c", 0, "a", gpu="none"), machine("m", 1, "a"), older)

    assert decision == Start(decision.grant, (OLDER_POD,))
