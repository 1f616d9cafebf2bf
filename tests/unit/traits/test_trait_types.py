"""Traits whose names administrators' code uses for attributes of its own."""

from __future__ import annotations

import logging
from threading import Lock
from types import MappingProxyType
from typing import Any

import pytest
import yaml
from traitlets import HasTraits, TraitError

from gpuspawner.traits import trait_types
from gpuspawner.traits.trait_types import Dict, Enum, Float, List, Union, setting

pytestmark = pytest.mark.each_python


def type_of(value):
    return type(value).__name__


class Settings(HasTraits):
    """What a configuration is read into."""

    mode = Enum(["on", "off"], "off")
    queue = Union([Dict(), List(Float())])


class Shared(Settings):
    """As a spawner."""

    gpuspawner_kept: Any = MappingProxyType({})


@pytest.mark.parametrize(("name", "value"), [("mode", 1), ("queue", "long"), ("queue", ["a"])])
def test_a_configuration_takes_no_wrong_value(name, value):
    with pytest.raises(TraitError):
        setattr(Settings(), name, value)


def test_off_without_quotes_is_off_although_yaml_reads_it_as_false():
    settings, spawner = Settings(mode="on"), Shared(mode="on")

    settings.mode = spawner.mode = yaml.safe_load("off")

    assert (settings.mode, spawner.mode) == ("off", "off")


@pytest.mark.parametrize("value", ["long", 7, ["a"], Lock()], ids=type_of)
def test_a_spawner_takes_any_value_and_the_trait_keeps_its_own(value):
    spawner = Shared(queue={"places": 2})

    spawner.queue = value
    spawner.queue = value

    assert spawner.queue is value or spawner.queue == value
    assert setting(spawner, "queue") == {"places": 2}
    assert setting(spawner, "mode") == "off"
    assert Shared.gpuspawner_kept == {}


def test_a_value_that_the_trait_can_have_is_its_value_again():
    spawner = Shared()
    spawner.mode, spawner.queue = 7, 8

    spawner.mode = "on"

    assert (setting(spawner, "mode"), setting(spawner, "queue")) == ("on", {})


def test_each_name_is_told_once(caplog):
    trait_types._tell.cache_clear()
    caplog.set_level(logging.WARNING)

    for _ in range(3):
        Shared().mode = 7

    [line] = caplog.messages
    assert "attribute mode to a value that GPUSpawner.mode can't have" in line
