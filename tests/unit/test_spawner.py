"""GPUSpawner stands in front of a class of the administrator's, or says what is in the way."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from jupyterhub.spawner import LocalProcessSpawner
from kubespawner import KubeSpawner
from traitlets import Unicode, default
from traitlets.config import Config, Configurable

from gpuspawner import GPUSpawner, configure
from gpuspawner.compat.spawner_class import SpawnerClassError
from gpuspawner.configuration import check
from gpuspawner.spawner import in_front_of

pytestmark = pytest.mark.each_python


class Mixin(Configurable):
    binder = Unicode("none", config=True)

    def start(self) -> Any:
        return super().start()


class CourseSpawner(Mixin, KubeSpawner):
    """Our own."""

    room = Unicode("none", config=True)

    async def start(self) -> Any:
        return await super().start()

    def run_pre_spawn_hook(self) -> Any:
        return None


def test_gates_run_before_the_class_s_methods_and_kubespawner_s_run_last() -> None:
    made = in_front_of(CourseSpawner)

    assert made.__mro__[1:5] == (GPUSpawner, CourseSpawner, Mixin, KubeSpawner)
    assert made.run_pre_spawn_hook is GPUSpawner.run_pre_spawn_hook
    assert in_front_of(CourseSpawner) is in_front_of(made) is made


def test_the_class_keeps_its_name_and_its_sections() -> None:
    made = in_front_of(CourseSpawner)
    c = Config()
    c.CourseSpawner.room = "course"
    c.Mixin.binder = "mixin"
    c.GPUSpawner.preflight = "warn"
    c.KubeSpawner.start_timeout = 7

    spawner = check(c, made)

    assert (made.__name__, made.__module__, made.__doc__) == (
        "CourseSpawner",
        CourseSpawner.__module__,
        "Our own.",
    )
    assert spawner.room == "course"
    assert spawner.binder == "mixin"
    assert (spawner.preflight, spawner.start_timeout) == ("warn", 7)


def test_what_the_class_s_section_adds_is_there_once_however_many_spawners_are_made(
    hub_with,
) -> None:
    """As hubs do that append their volumes; traitlets merges a section into itself otherwise."""
    made, c = in_front_of(CourseSpawner), Config()
    c.CourseSpawner.args.append("--course")
    c.CourseSpawner.args.prepend(["--first"])
    c.CourseSpawner.args.insert(0, "--in-between")

    made_of_it = [hub_with().spawner(made, **c.CourseSpawner).args for _ in range(3)]

    assert made_of_it == 3 * [["--first", "--in-between", "--course"]]
    assert check(c, made).args == made_of_it[0]
    assert c.CourseSpawner.args.to_dict() == {"prepend": ["--first"], "extend": ["--course"]}
    assert made.section_names()[-2:] == ["GPUSpawner", "CourseSpawner"]


def test_an_unknown_name_in_the_class_s_section_stops_no_hub_that_ran_with_it() -> None:
    c = Config()
    c.CourseSpawner.roon = "course"

    assert check(c, in_front_of(CourseSpawner)).room == "none"


def test_one_line_of_the_log_names_the_class(caplog) -> None:
    class LoggedSpawner(KubeSpawner):  # type: ignore[misc]
        pass

    with caplog.at_level(logging.INFO):
        in_front_of(LoggedSpawner)
        in_front_of(LoggedSpawner)

    assert caplog.messages == [
        "GPUSpawner checks each start before LoggedSpawner, which keeps its own methods"
    ]


def test_a_name_of_a_class_is_imported() -> None:
    made = in_front_of(f"{__name__}.CourseSpawner")

    assert made is in_front_of(CourseSpawner)


def repeated(start: Any) -> Any:
    async def again(*args: Any) -> Any:
        return await start(*args)

    return again


class StartsByAMethod(KubeSpawner):  # type: ignore[misc]
    async def start(self) -> Any:
        return await self.start_in_a_room()

    async def start_in_a_room(self) -> Any:
        return await super().start()


class StartsInADecorator(KubeSpawner):  # type: ignore[misc]
    @repeated
    async def start(self) -> Any:
        return await super().start()


@pytest.mark.parametrize("given", [StartsByAMethod, StartsInADecorator])
def test_a_start_that_leads_to_the_gates_by_other_functions_can_have_gates(given) -> None:
    assert issubclass(in_front_of(given), GPUSpawner)


class StartsAlone(KubeSpawner):  # type: ignore[misc]
    async def start(self) -> Any:
        await asyncio.sleep(0)
        return "10.0.0.1", 8888


class StepsAlone(KubeSpawner):  # type: ignore[misc]
    async def _start(self) -> Any:
        return "10.0.0.1", 8888


class HasImages(KubeSpawner):  # type: ignore[misc]
    images = Unicode()


class HasStock(KubeSpawner):  # type: ignore[misc]
    stock = gates = copied = "ours"
    has_own_options = None

    def take_charge(self) -> str:
        return self.stock


def test_names_that_are_no_traits_of_ours_are_the_class_s() -> None:
    made: Any = in_front_of(HasStock)

    assert (made.stock, made.gates, made.has_own_options) == ("ours", "ours", None)
    assert made.take_charge is HasStock.take_charge


class LabelsPods(KubeSpawner):  # type: ignore[misc]
    @default("extra_labels")
    def _of_the_lab(self) -> dict[str, str]:
        return {"network-policy": "strict"}


def test_what_lines_add_to_a_default_that_the_class_computes_is_added_to_it(hub_with) -> None:
    """Our check reads the configuration without the class's methods, and leaves no trace."""
    c = Config()
    c.JupyterHub.spawner_class = LabelsPods
    c.LabelsPods.extra_labels.update({"course": "ml"})
    configure(c)

    spawner = hub_with().spawner(c.JupyterHub.spawner_class, **c.LabelsPods)

    assert spawner.extra_labels == {"network-policy": "strict", "course": "ml"}


class HasNoChildren(KubeSpawner):  # type: ignore[misc]
    def __init_subclass__(cls) -> None:
        raise TypeError("this class is final")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (LocalProcessSpawner, "isn't a KubeSpawner; remove that line"),
        ("no.such.Spawner", "'no.such.Spawner', which can't be imported"),
        (StartsAlone, r"StartsAlone\.start \(line \d+ of .*\) never calls super\(\)\.start\(\)"),
        (StepsAlone, r"StepsAlone\._start \(line \d+ of .*\) never calls super\(\)\._start\(\)"),
        (HasImages, "HasImages has its own images, which GPUSpawner uses too; rename it"),
        (HasNoChildren, r"HasNoChildren can't be combined with GPUSpawner \(this class is final\)"),
    ],
)
def test_a_class_that_cannot_have_gates_is_refused_with_the_line_to_change(given, told) -> None:
    with pytest.raises(SpawnerClassError, match=told):
        in_front_of(given)
