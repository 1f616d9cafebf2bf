"""Classes of administrators that give the name of a trait to something else."""

from typing import Any

import pytest
from kubespawner import KubeSpawner
from traitlets import List, Unicode, default
from traitlets.config import Config

from gpuspawner.compat.class_traits import configurable
from gpuspawner.configuration import check
from gpuspawner.spawner import in_front_of
from tests.unit.makers.profile_lists import CPU, GPU
from tests.unit.makers.worlds import node

T4 = {"node_selector": {"gpu": "t4"}, "environment": {"GPU": "t4"}}


class HidesTraits(KubeSpawner):
    """As many classes in public hubs: without ``c.``, a line looks the same."""

    start_timeout = 600
    node_selector = {"pool": "users"}  # noqa: RUF012, as administrators write it
    environment = {"POOL": "users"}  # noqa: RUF012
    profile_list = List([CPU, {**GPU, "kubespawner_override": T4}])

    @property
    def extra_resource_limits(self) -> dict[str, str]:
        """As in Kubeflow's KubeFormSpawner."""
        return self.user_options.get("limits", {})

    def pre_spawn_hook(self, _: object) -> None:
        """Do nothing."""


def test_what_a_class_gives_to_a_trait_s_name_is_the_setting() -> None:
    c = Config()
    c.HidesTraits.start_timeout = 30  # KubeSpawner ignores it, too

    settings = check(c, in_front_of(HidesTraits))

    assert settings.start_timeout == 600
    assert settings.node_selector == {"pool": "users"}
    assert settings.profile_list[0] == CPU
    assert settings.pre_spawn_hook is HidesTraits.pre_spawn_hook


def test_a_property_s_value_is_known_only_of_a_spawner() -> None:
    assert check(Config(), in_front_of(HidesTraits)).extra_resource_limits == {}


class NamesIt(KubeSpawner):
    namespace = "users"


class DeclaresIt(KubeSpawner):
    namespace = Unicode("users", config=True)


class ComputesIt(KubeSpawner):
    @default("namespace")
    def _of_servers(self) -> str:
        return "users"


class ComputesOneOfAUser(KubeSpawner):
    @default("namespace")
    def _of_servers(self) -> str:
        return f"user-{self.user.name}"


class ReadsIt(KubeSpawner):
    @default("namespace")
    def _of_servers(self) -> object:
        return self.config.OurHub.namespace


class HasOneOfAUser(KubeSpawner):
    @property
    def namespace(self) -> str:
        return f"user-{self.user.name}"


@pytest.mark.parametrize(
    ("theirs", "namespace"),
    [
        (NamesIt, "users"),
        (DeclaresIt, "users"),
        (ComputesIt, "users"),
        (ReadsIt, "users"),
        (ComputesOneOfAUser, "jhub"),
        (HasOneOfAUser, "jhub"),
    ],
)
def test_servers_are_counted_in_the_namespace_that_their_class_gives(
    theirs, namespace, monkeypatch
) -> None:
    """What needs a user isn't known; then they are counted in that of the hub."""
    of_hub = "gpuspawner.compat.kubespawner.default_namespace"
    monkeypatch.setattr(of_hub, lambda: "jhub")

    c = Config({"OurHub": {"namespace": "users"}})
    assert check(c, in_front_of(theirs)).namespace == namespace


def test_a_namespace_that_is_no_text_is_not_known(monkeypatch) -> None:
    monkeypatch.setattr("gpuspawner.compat.kubespawner.default_namespace", lambda: "jhub")

    assert check(Config(), in_front_of(ReadsIt)).namespace == "jhub"


NAMES = sorted(KubeSpawner.class_trait_names(config=True))


@pytest.mark.parametrize("value", [None, property(lambda _: None), Unicode()])
def test_no_trait_that_a_class_hides_is_lost(value) -> None:
    theirs = type("Custom", (KubeSpawner,), dict.fromkeys(NAMES, value))

    assert configurable(theirs).keys() == KubeSpawner.class_traits(config=True).keys()


async def test_a_page_that_tries_profiles_leaves_the_class_s_attributes_as_they_are(
    hub_with,
) -> None:
    spawner: Any = hub_with(("Node", node("a", 2))).spawner(in_front_of(HidesTraits))
    spawner.user_options = {"limits": {"nvidia.com/gpu": "1"}}

    assert 'value="gpu"' in await spawner.get_options_form()

    assert HidesTraits.node_selector == {"pool": "users"}
    assert HidesTraits.environment == {"POOL": "users"}
