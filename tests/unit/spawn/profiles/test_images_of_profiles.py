"""Which images of profiles need no download."""

from __future__ import annotations

from gpuspawner.cluster.health import Stale
from tests.unit.preflight.worlds import having, node, pod
from tests.unit.spawn.profiles.clusters import TWO_GPUS, profiles_of
from tests.unit.spawn.profiles.lists import CPU, GPU

WITH_TORCH = ("Node", having(TWO_GPUS[1], "docker.io/library/torch:1"))


async def test_an_image_that_every_node_with_room_has_needs_no_download(hub_with) -> None:
    source = profiles_of(hub_with(WITH_TORCH).spawner(profile_list=[CPU, GPU]))

    form = await source.form()
    _, gpu = await source.states()

    assert ">Torch (no download needed)<" in form
    assert ">Base<" in form
    assert [it["label"] for it in gpu["images"]] == ["Base", "Torch (no download needed)"]


async def test_an_open_form_takes_back_what_is_no_longer_known_of_an_image(hub_with) -> None:
    hub = hub_with(WITH_TORCH)
    source = profiles_of(hub.spawner(profile_list=[CPU, GPU]))

    async def labels() -> list[str]:
        _, gpu = await source.states()
        return [it["label"] for it in gpu["images"]]

    assert await labels() == ["Base", "Torch (no download needed)"]
    hub.view.put(*TWO_GPUS)
    assert await labels() == ["Base", "Torch"]
    hub.view.put("Node", having(TWO_GPUS[1], "base:1"))
    assert await labels() == ["Base (no download needed)", "Torch"]
    hub.view.now = Stale(99.0, "the API server is gone")
    assert await labels() == ["Base", "Torch"]


async def test_the_default_choices_of_the_default_profile_may_need_no_download_either(
    hub_with,
) -> None:
    with_base = ("Node", having(TWO_GPUS[1], "base:1"))
    form = await profiles_of(hub_with(with_base).spawner(profile_list=[GPU])).form()

    assert ">Base (no download needed)<" in form
    assert ">Torch<" in form


async def test_a_profile_s_node_without_the_image_has_to_download_it(hub_with) -> None:
    other = ("Node", node("b", 1))
    spawner = hub_with(WITH_TORCH, other).spawner(profile_list=[CPU, GPU])

    assert ">Torch<" in await profiles_of(spawner).form()


async def test_a_profile_without_room_says_nothing_of_images(hub_with) -> None:
    taken = ("Pod", pod("x", 2, on="a"))
    spawner = hub_with(WITH_TORCH, taken).spawner(profile_list=[CPU, GPU])

    assert ">Torch<" in await profiles_of(spawner).form()


async def test_a_sidecar_s_image_has_to_be_there_too(hub_with) -> None:
    sidecar = {"name": "sidecar", "image": "sidecar:1"}
    with_sidecar = {"profile_list": [CPU, GPU], "extra_containers": [sidecar]}

    without = hub_with(WITH_TORCH).spawner(**with_sidecar)
    whole = ("Node", having(TWO_GPUS[1], "torch:1", "sidecar:1"))
    both = hub_with(whole).spawner(**with_sidecar)

    assert ">Torch<" in await profiles_of(without).form()
    assert ">Torch (no download needed)<" in await profiles_of(both).form()
