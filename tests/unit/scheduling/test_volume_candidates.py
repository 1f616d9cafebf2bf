"""The volumes that a claim can take."""

import msgspec

from gpuspawner.kube.meta import LabelSelector, LabelSelectorRequirement
from gpuspawner.kube.storage import PersistentVolume
from gpuspawner.scheduling.labels import EVERYTHING, compile_selector
from gpuspawner.scheduling.volume_candidates import ByLabel, Candidates, Reach, reach_of
from tests.unit.makers.storage import volume


def one_of(key, *values):
    expression = LabelSelectorRequirement(key, "In", values)
    return compile_selector(LabelSelector(match_expressions=(expression,)))


THINGS = ByLabel(
    [
        (one_of("node", "b"), "on b"),
        (one_of("node", "a"), "on a"),
        (one_of("node", "a", "b"), "on a or b"),
        (one_of("zone", "z"), "in z"),
        (EVERYTHING, "anywhere"),
        (one_of("node", "a"), "on a too"),
    ]
)


def test_a_node_is_near_what_may_match_it_in_the_given_order():
    assert [*THINGS.near({"node": "a"})] == ["on a", "on a or b", "anywhere", "on a too"]
    assert [*THINGS.near({"node": "b", "zone": "z"})] == [
        "on b",
        "on a or b",
        "in z",
        "anywhere",
    ]
    assert [*THINGS.near({})] == ["on a or b", "anywhere"]


def test_only_without_things_is_it_empty():
    assert THINGS
    assert len(ByLabel()) == 0


class Counted(ByLabel[Reach]):
    """Notes how often all of it is counted."""

    counted = 0

    def __len__(self) -> int:
        self.counted += 1
        return super().__len__()


def test_the_volumes_of_a_thousand_nodes_are_not_counted_for_each_node() -> None:
    """Each has a label value of its own, so a count costs as much as there are nodes."""
    disks = [volume(f"disk-{number}", f"zone-{number}") for number in range(1000)]
    reaches = [reach_of(msgspec.convert(it, PersistentVolume)) for it in disks]
    near = Counted((it.selector, it) for it in reaches)

    found = Candidates((), near).free_for({"zone": f"zone-{number}"} for number in range(1000))

    assert len(found) == 1000
    assert near.counted == 1
