"""Limits on the profiles that KubeSpawner loads."""

from collections.abc import Callable
from typing import Any

import pytest

from gpuspawner.start.refusal import Refusal
from tests.unit.makers.profile_lists import CPU


@pytest.fixture
def writing_in(hub_with) -> Callable[[str], Any]:
    """Make the spawner of a user who has written in the name of an image."""
    image = {
        "display_name": "Image",
        "choices": {"base": {"display_name": "Base"}},
        "unlisted_choice": {
            "enabled": True,
            "validation_regex": "^(a|aa)+$",
            "kubespawner_override": {"image": "{value}"},
        },
    }
    listed = [{**CPU, "slug": "cpu", "profile_options": {"image": image}}]

    def spawner(written: str) -> Any:
        spawner = hub_with().spawner(profile_list=listed)
        spawner.user_options = {"profile": "cpu", "image--unlisted-choice": written}
        return spawner

    return spawner


async def test_a_written_in_value_is_loaded_if_the_administrator_allows_it(writing_in) -> None:
    spawner = writing_in("aaa")

    await spawner.load_user_options()

    assert spawner.image == "aaa"
    with pytest.raises(ValueError, match="'b' isn't allowed"):
        await writing_in("b").load_user_options()


async def test_a_number_that_is_written_in_is_loaded_as_its_text(hub_with) -> None:
    gigabytes = {
        "display_name": "GB",
        "unlisted_choice": {"enabled": True, "kubespawner_override": {"mem_limit": "{value}G"}},
    }
    listed = [{**CPU, "slug": "cpu", "profile_options": {"memory": gigabytes}}]
    spawner = hub_with().spawner(profile_list=listed)
    spawner.user_options = {"profile": "cpu", "memory--unlisted-choice": 8}

    await spawner.load_user_options()

    assert spawner.mem_limit == 8 * 2**30


@pytest.mark.each_python
async def test_kubespawner_matches_written_in_values_in_bounded_time(writing_in) -> None:
    """`re` would block the hub on this value; it wouldn't even handle a signal."""
    evil = writing_in("a" * 60 + "!")

    with pytest.raises(ValueError, match="takes too long to check"):
        await evil.load_user_options()
    assert "Base" in await evil.get_options_form()


async def test_a_profile_cannot_set_offers(hub_with) -> None:
    cheating = {**CPU, "kubespawner_override": {"accelerators": {}, "image": "mine:1"}}
    spawner = hub_with().spawner(profile_list=[cheating])

    with pytest.raises(Refusal) as raised:
        await spawner.load_user_options()
    assert raised.value.details == "GPUSpawner.accelerators can only be set for the whole hub"
    assert spawner.image != "mine:1"
