"""What owners read of servers whose GPUs aren't used."""

import pytest

from gpuspawner.messages import idle


@pytest.mark.parametrize(("gpus", "named"), [(1, "its GPU for"), (2, "its GPUs for")])
@pytest.mark.parametrize("left", [0.0, 60.0])
def test_a_server_with_several_gpus_reads_of_all_of_them(gpus, named, left):
    assert named in idle.unused("train", gpus, 60)
    assert named in idle.will_be_stopped("train", gpus, 60, left)


def test_an_owner_who_keeps_a_server_reads_for_how_long():
    kept = "<strong>train</strong> is kept for 1 hour from now, whether it uses a GPU or not."

    assert idle.stays("train", 3600) == kept
    assert idle.stays("train", 0) == "<strong>train</strong> isn&#39;t about to be stopped."
