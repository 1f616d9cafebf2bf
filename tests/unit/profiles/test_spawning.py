"""A spawner's own part: the form after a start that was refused, and profiles that do not load."""

from __future__ import annotations

import asyncio
from functools import partial
from types import SimpleNamespace
from typing import Any

import kubespawner
import pytest
from tornado import web

from gpuspawner import hub
from gpuspawner.preflight.admitted import AdmittedPreflight
from gpuspawner.preflight.preflight import Preflight
from gpuspawner.profiles.trial import Listing, listing
from tests.unit.preflight.worlds import StillView, node
from tests.unit.profiles.lists import CPU, GPU
from tests.unit.profiles.spawners import ProfileSpawner


def _spawner(**traits: Any) -> ProfileSpawner:
    view = StillView(("Node", node("a", 2)))
    spawner = ProfileSpawner(**traits)
    spawner._runtime = SimpleNamespace(view=view, preflight=AdmittedPreflight(Preflight(view)))
    return spawner


@pytest.mark.parametrize("kind", ["plain", "coroutine", "returns a coroutine", "object"])
async def test_a_function_is_called_once_by_a_gate_that_is_begun_twice(kind: str) -> None:
    done = []

    def plain(_: object) -> list[Any]:
        done.append("called")
        return [CPU]

    async def coroutine(spawner: object) -> list[Any]:
        await asyncio.sleep(0)
        return plain(spawner)

    def returns_a_coroutine(spawner: object) -> Any:
        return coroutine(spawner)

    class Function:
        async def __call__(self, spawner: object) -> list[Any]:
            return await coroutine(spawner)

    functions: dict[str, Any] = {
        "plain": plain,
        "coroutine": coroutine,
        "returns a coroutine": returns_a_coroutine,
        "object": Function(),
    }
    spawner = _spawner(profile_list=functions[kind])

    async def gate(listed: Listing) -> bool:
        done.append("begun")
        profiles = await spawner.profiles(listed)
        await asyncio.sleep(0)  # as for a dry run
        return profiles is not None

    assert await hub.at_once(partial(gate, listing(spawner)))  # type: ignore[misc]
    await asyncio.sleep(0)  # for tasks that were begun and left alone

    assert sorted(done) == ["begun", "begun", "called"]


async def test_a_form_after_a_refused_start_knows_nothing_of_the_profile_that_was_loaded() -> None:
    spawner = _spawner(profile_list=[CPU, GPU])
    before = await spawner.profile_form()

    spawner.keep_unloaded()
    spawner.user_options = {"profile": "gpu"}
    await spawner.load_user_options()
    assert spawner.extra_resource_limits == {"nvidia.com/gpu": "1"}
    spawner.user_options = {}

    assert await spawner.profile_form() == before


async def test_what_was_kept_for_such_a_form_goes_with_a_start_that_succeeds() -> None:
    spawner = _spawner(profile_list=[CPU, GPU])
    started: asyncio.Future[object] = asyncio.Future()

    spawner.keep_unloaded()
    started.set_exception(ValueError())
    spawner.forget_unloaded(started)
    assert spawner._unloaded is not None

    started = asyncio.Future()
    started.set_result(None)
    spawner.forget_unloaded(started)
    assert spawner._unloaded is None


async def test_a_profile_that_cannot_be_loaded_when_it_starts_is_no_500() -> None:
    spawner = _spawner(profile_list=[GPU])
    spawner._underway = object()
    spawner.user_options = {"profile": "taken away meanwhile"}

    with pytest.raises(hub.Refusal, match="something in the hub's settings contradicts it"):
        await spawner.load_user_options()


async def test_an_administrator_s_own_answer_stays_theirs() -> None:
    def not_for_you(_: object) -> list[dict[str, Any]]:
        raise web.HTTPError(403, "Only for members of the course")

    spawner = _spawner(profile_list=not_for_you)

    with pytest.raises(web.HTTPError, match="Only for members"):
        await spawner.profile_form()


async def test_a_function_that_fails_is_told_to_people_and_logged() -> None:
    def fails(_: object) -> list[dict[str, Any]]:
        raise LookupError("the directory of courses")

    with pytest.raises(hub.Refusal, match="something in the hub's settings contradicts it"):
        await _spawner(profile_list=fails).profile_form()


@pytest.mark.skipif(
    kubespawner.version_info < (7, 1), reason="version: KubeSpawner 7.1 brought dictionaries"
)
async def test_profiles_may_be_a_dictionary() -> None:
    as_list = await _spawner(profile_list=[CPU, GPU]).profile_form()

    assert await _spawner(profile_list={"1": CPU, "2": GPU}).profile_form() == as_list


def _writing_in(written: str) -> ProfileSpawner:
    image = {
        "display_name": "Image",
        "choices": {"base": {"display_name": "Base"}},
        "unlisted_choice": {
            "enabled": True,
            "validation_regex": "^(a|aa)+$",
            "kubespawner_override": {"image": "{value}"},
        },
    }
    spawner = _spawner(profile_list=[{**CPU, "slug": "cpu", "profile_options": {"image": image}}])
    spawner.user_options = {"profile": "cpu", "image--unlisted-choice": written}
    return spawner


async def test_what_is_written_in_is_loaded_where_the_administrator_allows_it() -> None:
    spawner = _writing_in("aaa")

    await spawner.load_user_options()

    assert spawner.image == "aaa"
    with pytest.raises(ValueError, match="'b' is not allowed"):
        await _writing_in("b").load_user_options()


async def test_kubespawner_matches_nothing_without_an_end() -> None:
    """Once `re` has begun with it nobody has the hub again: it does not even hear a signal."""
    evil = _writing_in("a" * 60 + "!")

    with pytest.raises(ValueError, match="cannot be checked"):
        await evil.load_user_options()
    assert "Base" in await evil.profile_form()
