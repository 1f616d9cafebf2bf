"""The volumes that a claim can take."""

import msgspec

from gpuspawner.kube.storage import PersistentVolume
from gpuspawner.scheduling.by_label import ByLabel
from gpuspawner.scheduling.volume_candidates import Candidates, Reach, reach_of
from tests.unit.makers.storage import volume


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
