"""The forms of administrators: a class's own, and a function that sets the profiles."""

import asyncio
from typing import Any
from unittest.mock import AsyncMock

import pytest
from jupyterhub.utils import maybe_future
from kubespawner import KubeSpawner
from traitlets import Unicode, default

from gpuspawner.cluster.health import Reading
from gpuspawner.gates import administrators_form
from gpuspawner.gates.sources import FORM_PATIENCE
from gpuspawner.profiles.profiles import Profiles
from gpuspawner.spawner import in_front_of
from tests.unit.makers.hubs import A100, named
from tests.unit.makers.profile_clusters import TWO_GPUS
from tests.unit.makers.profile_lists import CPU, GPU
from tests.unit.makers.worlds import node


async def _awaited(spawner: Any) -> Any:
    """As KubeSpawner's own methods allow it."""
    spawner.profile_list = [CPU, GPU]
    return await spawner._render_options_form_dynamically(spawner)


async def _default(spawner: Any) -> Any:
    spawner.profile_list = [CPU, GPU]
    return spawner._options_form_default()


@pytest.mark.parametrize("function", [_awaited, _default])
async def test_a_function_may_return_what_kubespawner_s_methods_draw(function, hub_with) -> None:
    spawner = hub_with(TWO_GPUS).spawner(options_form=function)

    assert "Free</span> 2 of 2 free" in await spawner.get_options_form()


async def _only_cpu(spawner: Any) -> Any:
    return spawner._render_options_form([CPU])


@pytest.mark.parametrize("listed", [[CPU, GPU], lambda _: [CPU, GPU], []])
async def test_a_form_of_some_profiles_shows_no_others(hub_with, listed) -> None:
    spawner = hub_with(TWO_GPUS).spawner(options_form=_only_cpu, profile_list=listed)

    drawn = await spawner.get_options_form()

    assert 'value="cpu-only"' in drawn
    assert 'value="gpu"' not in drawn


async def test_a_function_of_profiles_is_no_form_of_the_administrator_s(hub_with) -> None:
    spawner = hub_with(TWO_GPUS).spawner(profile_list=lambda _: [CPU, GPU])

    assert "Free</span> 2 of 2 free" in await spawner.get_options_form()
    assert not administrators_form.is_set(spawner)
    assert spawner.run_pre_spawn_hook() is None


async def test_what_a_function_offers_is_known_before_it_has_drawn_a_page(hub_with) -> None:
    """Open forms and scripts ask for states after the hub has restarted, too."""
    spawner = hub_with(TWO_GPUS).spawner(options_form=_awaited)
    profiles = await spawner.gpuspawner_gates.sources.offered()
    assert isinstance(profiles, Profiles)
    assert [it["profile"] for it in await profiles.states()] == ["cpu-only", "gpu"]

    spawner = hub_with(TWO_GPUS).spawner(options_form="<p>The administrator's</p>")
    assert await spawner.gpuspawner_gates.sources.offered() is None


async def hangs(_: object) -> str:
    await asyncio.Event().wait()
    return ""


async def fails(_: object) -> str:
    raise OSError("no answer from the directory")


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("function", [hangs, fails])
async def test_a_function_that_hangs_or_fails_does_not_keep_servers_from_starting(
    function, hub_with, caplog
) -> None:
    spawner = hub_with(TWO_GPUS).spawner(options_form=function, profile_list=[CPU])

    await asyncio.wait_for(maybe_future(spawner.run_pre_spawn_hook()), 3600)

    assert spawner.gpuspawner_gates.attempt is not None
    assert "The function in options_form failed for alice" in caplog.text


@pytest.mark.usefixtures("clock")
async def test_a_hub_without_gpus_still_starts_servers_without_a_form(hub_with) -> None:
    hub = hub_with(("Node", node("a", 0)))
    spawner = hub.spawner()

    assert await spawner.get_options_form() == ""
    hub.view.now = Reading(3)
    assert "still reading the cluster" in await spawner.get_options_form()


async def test_a_page_waits_only_once_for_the_first_list(hub_with, monkeypatch) -> None:
    hub = hub_with(TWO_GPUS)
    hub.view.now = Reading(3)
    first_list = AsyncMock(return_value=False)
    monkeypatch.setattr(hub.view, "first_list", first_list)

    assert "still reading the cluster" in await hub.spawner().get_options_form()
    first_list.assert_awaited_once_with(FORM_PATIENCE)


async def test_the_form_stays_when_the_last_gpu_has_gone(hub_with) -> None:
    hub = hub_with(("Node", node("a", 1)))
    spawner = hub.spawner()

    assert "NVIDIA GPU" in await spawner.get_options_form()
    hub.view.put("Node", node("a", 0))
    assert "There are no GPUs to choose from" in await spawner.get_options_form()


async def test_other_offers_need_a_form_without_gpus(hub_with) -> None:
    spawner = hub_with().spawner(memory_choices=["1Gi", "2Gi"])

    assert "2 GiB" in await spawner.get_options_form()


class FormOfItsOwn(KubeSpawner):
    """Sets its form if it finds none, as the spawner of a laboratory's public service does."""

    own_form = Unicode(config=True)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.reads_forms = callable(self.options_from_form)
        if not self.options_form and self.own_form:
            self.options_form = self.draw

    async def draw(self, spawner: KubeSpawner) -> str:
        return f"<p>{self.own_form} for {spawner.user.name}</p>"


@pytest.mark.parametrize(
    ("traits", "is_set", "shown"),
    [
        ({"own_form": "A"}, True, "<p>A for alice</p>"),
        ({}, False, "A100"),
        ({"own_form": "A", "options_form": "<b>configured</b>"}, True, "<b>configured</b>"),
    ],
    ids=["its own", "ours", "the configured one"],
)
async def test_a_class_that_looks_for_a_form_while_it_is_made_may_set_its_own(
    hub_with, traits, is_set, shown
) -> None:
    own = in_front_of(FormOfItsOwn)

    spawner = hub_with().spawner(own, accelerators={"a100": A100}, **traits)

    assert spawner.reads_forms
    assert administrators_form.is_set(spawner) is is_set
    assert shown in await spawner.get_options_form()


class NamedAsInDockerSpawner(KubeSpawner):
    """Names the functions of its traits' defaults otherwise than KubeSpawner."""

    @default("options_form")
    def _default_options_form(self) -> str:
        return f"<select name='size'><option>big</select>{self._options_form_default()}"

    @default("options_from_form")
    def _default_options_from_form(self) -> Any:
        stock = self._options_from_form_default()
        return lambda form: {"size": form["size"][0], **stock(form)}

    @default("apply_user_options")
    def _default_apply_user_options(self) -> Any:
        return self._apply

    def _apply(self, _: object, options: dict[str, str]) -> None:
        self.environment = {**self.environment, "SIZE": options["size"]}


async def test_a_class_s_defaults_are_used_whatever_their_functions_are_called(hub_with) -> None:
    spawner = hub_with(TWO_GPUS).spawner(in_front_of(NamedAsInDockerSpawner))

    assert await spawner.get_options_form() == "<select name='size'><option>big</select>"
    chosen = await spawner.run_options_from_form({"size": ["big"]})
    assert chosen["size"] == "big"
    await maybe_future(spawner.apply_user_options(spawner, chosen))
    assert spawner.environment["SIZE"] == "big"


class FormOfItsDeclaration(KubeSpawner):
    options_form = Unicode("<p>Choose well</p>")


class FormInPlaceOfTheTrait(KubeSpawner):
    options_form = "<p>Choose well</p>"


@pytest.mark.parametrize("kind", [FormOfItsDeclaration, FormInPlaceOfTheTrait])
async def test_a_form_in_a_class_s_body_is_drawn(hub_with, kind) -> None:
    spawner = hub_with(TWO_GPUS).spawner(in_front_of(kind))

    assert await spawner.get_options_form() == "<p>Choose well</p>"
    assert spawner.gpuspawner_gates.sources.accelerators is None


class ReadsByAMethod(KubeSpawner):
    options_form = "<select name='size'><option>big</select>"

    def options_from_form(self, form: dict[str, list[str]]) -> dict[str, str]:
        """As in Kubeflow's KubeFormSpawner."""
        return {name: it[0] for name, it in form.items()}


async def test_a_class_may_read_its_form_by_a_method(hub_with) -> None:
    spawner: Any = hub_with(TWO_GPUS).spawner(in_front_of(ReadsByAMethod))

    assert await spawner.run_options_from_form({"size": ["big"]}) == {"size": "big"}
    sources = spawner.gpuspawner_gates.sources
    assert sources.current.reads_form({"size": ["big"]}) == {"size": "big"}
    assert sources.default_form() == ReadsByAMethod.options_form


class NotForEverybody(KubeSpawner):
    async def _render_options_form_dynamically(self, current_spawner: Any) -> Any:
        if self.user.name == "guest":
            return "<p>Please contact the administrator.</p>"
        return await super()._render_options_form_dynamically(current_spawner)


async def test_a_class_that_draws_the_form_of_a_function_s_profiles_itself_draws_it(
    hub_with,
) -> None:
    own = in_front_of(NotForEverybody)
    hub = hub_with(TWO_GPUS)
    alice = hub.spawner(own, profile_list=lambda _: [CPU, GPU])
    guest = named(hub.spawner(own, profile_list=lambda _: [CPU, GPU]), "guest")

    assert 'value="gpu"' in await alice.get_options_form()
    assert await guest.get_options_form() == "<p>Please contact the administrator.</p>"
