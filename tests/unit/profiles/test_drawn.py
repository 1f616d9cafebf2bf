"""Forms that KubeSpawner draws once for all pages that show the same."""

from typing import Any

import pytest
from kubespawner import KubeSpawner

from gpuspawner import GPUSpawner
from gpuspawner.kube.objects import convert
from tests.unit.makers.profile_clusters import ONE_TAKEN, TWO_GPUS, profiles_of
from tests.unit.makers.profile_lists import CPU, GPU


@pytest.fixture
def drawings(monkeypatch) -> list[str]:
    """Collects the forms that KubeSpawner draws."""
    forms: list[str] = []
    render = KubeSpawner._render_options_form

    def counted(self: Any, profiles: Any) -> str:
        forms.append(render(self, profiles))
        return forms[-1]

    monkeypatch.setattr(KubeSpawner, "_render_options_form", counted)
    return forms


async def test_pages_that_show_the_same_are_drawn_once(hub_with, drawings) -> None:
    hub = hub_with(TWO_GPUS)

    pages = [await profiles_of(hub.spawner(profile_list=[CPU, GPU])).form() for _ in range(2)]

    assert pages[0] == pages[1]
    assert len(drawings) == 1


async def test_a_page_shows_a_new_state_at_once(hub_with, drawings) -> None:
    hub = hub_with(TWO_GPUS)
    before = await profiles_of(hub.spawner(profile_list=[CPU, GPU])).form()

    hub.view.state.put(convert(*ONE_TAKEN))
    after = await profiles_of(hub.spawner(profile_list=[CPU, GPU])).form()

    assert ">Two (Free: 2 of 2 free)<" in before
    assert ">Two (In use: 1 of 2 free)<" in after
    assert len(drawings) == 2


@pytest.mark.parametrize(
    "difference",
    [{"profile_form_template": "{{ profile_list | length }}"}, {"profile_list": [GPU]}],
    ids=lambda it: next(iter(it)),
)
async def test_pages_that_show_something_else_are_drawn_anew(
    difference, hub_with, drawings
) -> None:
    hub = hub_with(TWO_GPUS)
    await profiles_of(hub.spawner(profile_list=[CPU, GPU])).form()

    await profiles_of(hub.spawner(**{"profile_list": [CPU, GPU], **difference})).form()

    assert len(drawings) == 2


async def test_pages_of_users_with_other_last_choices_are_drawn_anew(hub_with, drawings) -> None:
    hub = hub_with(TWO_GPUS)
    for options in ({}, {"profile": "gpu", "gpus": "two"}):
        spawner = hub.spawner(profile_list=[CPU, GPU])
        spawner.user_options = options
        await profiles_of(spawner).form()

    assert len(drawings) == 2


async def test_a_class_that_draws_for_itself_draws_each_page(hub_with, drawings) -> None:
    class Greeting(GPUSpawner):
        def _get_initialized_profile_list(self, profile_list: Any) -> Any:
            return super()._get_initialized_profile_list(profile_list)

    hub = hub_with(TWO_GPUS)
    for _ in range(2):
        await profiles_of(hub.spawner(Greeting, profile_list=[CPU, GPU])).form()

    assert len(drawings) == 2
