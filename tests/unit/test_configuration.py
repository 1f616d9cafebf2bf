"""A broken configuration is refused at once, with the trait's name and the reason."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from jupyterhub.app import JupyterHub
from kubespawner import KubeSpawner
from traitlets import Callable, Enum, default
from traitlets.config import Config

from gpuspawner import GPUSpawner, configuration, configure, runtime
from gpuspawner.configuration import ConfigurationError, check
from gpuspawner.offers.shapes import OfferError
from gpuspawner.use import hub_use

A100 = {"node_selector": {"nvidia.com/gpu.product": "NVIDIA-A100"}}
ELSEWHERE = {"node_selector": {"nvidia.com/gpu.product": "none"}}


def _c(**sections: dict[str, Any]) -> Config:
    return Config({name: Config(traits) for name, traits in sections.items()})


def test_the_spawner_is_set() -> None:
    c = _c(GPUSpawner={"accelerators": {"a100": A100}})

    configure(c)

    assert c.JupyterHub.spawner_class is GPUSpawner


@pytest.mark.parametrize(
    "given", ["gpuspawner", "kubespawner", "kubespawner.KubeSpawner", KubeSpawner, GPUSpawner]
)
def test_the_spawner_replaces_the_chart_s_own(given) -> None:
    c = _c(JupyterHub={"spawner_class": given})

    configure(c)

    assert c.JupyterHub.spawner_class is GPUSpawner


def test_a_derived_class_is_kept_and_checked_by_its_own_name() -> None:
    class OurSpawner(GPUSpawner):
        pass

    c = _c(JupyterHub={"spawner_class": OurSpawner}, OurSpawner={"start_timeut": 3})

    with pytest.raises(ConfigurationError, match=r"OurSpawner\.start_timeut: .*start_timeout"):
        configure(c)
    assert c.JupyterHub.spawner_class is OurSpawner


def test_another_spawner_is_not_replaced_silently() -> None:
    c = _c(JupyterHub={"spawner_class": "jupyterhub.spawner.LocalProcessSpawner"})

    with pytest.raises(ConfigurationError, match=r"JupyterHub\.spawner_class"):
        configure(c)


@pytest.mark.parametrize("section", ["GPUSpawnr", "GpuSpawner", "GPUSPAWNER", "KubSpawner"])
def test_a_misspelt_section_is_named(section) -> None:
    with pytest.raises(ConfigurationError, match=f"no section {section}; did you mean c."):
        configure(_c(**{section: {"start_timeout": 3}}))


@pytest.mark.parametrize(
    "section",
    ["DockerSpawner", "KubeSpawner", "LabKubeSpawner", "MySpawner", "Culler", "Authenticator"],
)
def test_other_sections_are_ignored(section) -> None:
    configure(_c(**{section: {}}))


@pytest.mark.each_python  # Python words some of the errors
@pytest.mark.parametrize(
    ("sections", "error", "text"),
    [
        ({"GPUSpawner": {"acelerators": {}}}, ConfigurationError, "acelerators.*'accelerators'"),
        ({"GPUSpawner": {"start_timeout": "abc"}}, ConfigurationError, "start_timeout"),
        ({"KubeSpawner": {"start_timeout": "abc"}}, ConfigurationError, "start_timeout"),
        ({"GPUSpawner": {"autoscaler_status": ""}}, ConfigurationError, "namespace and the name"),
        ({"Spawner": {"http_timeout": [1]}}, ConfigurationError, "http_timeout"),
        ({"GPUSpawner": {"accelerators": ["a100"]}}, ConfigurationError, "accelerators"),
        ({"GPUSpawner": {"accelerators": {"a100": {}}}}, OfferError, "accelerators.*node_selector"),
        (
            {"GPUSpawner": {"accelerators": {"a100": {**A100, "counts": [0]}}}},
            OfferError,
            r"GPUSpawner.accelerators\['a100'\].counts\[0\]",
        ),
        (
            {"GPUSpawner": {"accelerators": {"a100": A100}}, "KubeSpawner": ELSEWHERE},
            ConfigurationError,
            r"accelerators\['a100'\]: its node_selector wants .*A100, but .* wants .*=none",
        ),
        ({"GPUSpawner": {"memory_choices": ["8Gib"]}}, OfferError, "memory_choices"),
        ({"GPUSpawner": {"cpu_choices": [-1]}}, OfferError, "cpu_choices"),
        (
            {"GPUSpawner": {"default_accelerator": "t4"}},
            OfferError,
            "default_accelerator: 't4' is not in accelerators; one that the hub discovers is no ",
        ),
        ({"GPUSpawner": {"memory_requested": 2}}, ConfigurationError, "memory_requested"),
        ({"GPUSpawner": {"cpu_environment": {"A": 1}}}, ConfigurationError, "cpu_environment"),
        (
            {
                "GPUSpawner": {"accelerators": {"a100": A100}},
                "KubeSpawner": {"profile_list": [{"display_name": "small"}]},
            },
            ConfigurationError,
            "accelerators and KubeSpawner.profile_list",
        ),
        (
            {
                "GPUSpawner": {"memory_choices": ["8Gi"]},
                "KubeSpawner": {"profile_list": [{"display_name": "small"}]},
            },
            ConfigurationError,
            "memory_choices and KubeSpawner.profile_list",
        ),
        (
            {"Spawner": {"group_overrides": {"ml": {"spawner_override": {"images": {}}}}}},
            ConfigurationError,
            r"Spawner.group_overrides\['ml'\] sets GPUSpawner.images",
        ),
        (
            {
                "KubeSpawner": {
                    "profile_list": [
                        {"display_name": "big", "kubespawner_override": {"memory_choices": []}}
                    ]
                }
            },
            ConfigurationError,
            r"KubeSpawner.profile_list\[0\] sets GPUSpawner.memory_choices",
        ),
        (
            {"KubeSpawner": {"profile_list": [{"description": "no name"}]}},
            ConfigurationError,
            r"KubeSpawner.profile_list can't be read: KeyError\('display_name'\)",
        ),
        (
            {
                "KubeSpawner": {
                    "profile_list": [
                        {"display_name": "small"},
                        {"display_name": "big", "profile_options": {"cpu_guarantee": 2}},
                    ]
                }
            },
            ConfigurationError,
            r"'int' object has no attribute 'get'\"\); look at profile_list\[1\]$",
        ),
        (
            {
                "KubeSpawner": {
                    "profile_list": [
                        {"display_name": "big", "scale_up": {"max_nodes": 0, "minutes": 5}}
                    ]
                }
            },
            OfferError,
            r"profile_list\[0\].scale_up.max_nodes: 0 is not a whole number of at least 1",
        ),
        (
            {"Spawner": {"apply_user_options": {"mine": "accelerators"}}},
            ConfigurationError,
            "Spawner.apply_user_options sets GPUSpawner.accelerators",
        ),
    ],
)
def test_a_mistake_is_reported_with_its_trait(sections, error, text) -> None:
    with pytest.raises(error, match=text):
        configure(_c(**sections))


def test_too_many_node_selector_terms_are_reported_at_the_start() -> None:
    two_labels = {f"m{n}": {"node_selector": {f"a{n}": "x", f"b{n}": "y"}} for n in range(10)}
    traits = {"accelerators": two_labels, "keep_cpu_servers_off_accelerators": True}

    with pytest.raises(
        ConfigurationError, match=r"accelerators\['m6'\].*more than 64 node selector"
    ):
        configure(_c(GPUSpawner=traits))


def test_an_accelerator_may_mount_a_volume_of_every_server() -> None:
    data = {"name": "data", "hostPath": {"path": "/srv/data"}}
    mounting = {**A100, "volume_mounts": [{"name": "data", "mountPath": "/data"}]}

    configure(_c(GPUSpawner={"accelerators": {"a100": mounting}}, KubeSpawner={"volumes": [data]}))


def test_values_of_all_sections_are_merged() -> None:
    c = _c(KubeSpawner={"start_timeout": 300, "k8s_api_host": "https://a"}, Spawner={"cmd": "x"})
    c.GPUSpawner.start_timeout = 400
    c.GPUSpawner.environment.update({"A": "b"})  # traitlets merges it with other values

    settings = check(c)

    assert (settings.start_timeout, settings.k8s_api_host) == (400, "https://a")
    assert settings.environment == {"A": "b"}
    assert settings.cpu_environment == {"NVIDIA_VISIBLE_DEVICES": "void"}


def test_later_lines_add_to_what_earlier_ones_have_begun() -> None:
    """The check between them reads a value, which traitlets otherwise keeps."""
    c = Config()
    c.KubeSpawner.args.append("--before")
    configure(c)
    c.KubeSpawner.args.append("--after")

    assert check(c).args == ["--before", "--after"]


@pytest.mark.parametrize(
    ("section", "traits"),
    [
        ("Spawner", {"group_overrides": {"ml": ["alice"]}}),
        ("Spawner", {"group_overrides": {"ml": {"spawner_override": None}}}),
        ("Spawner", {"apply_user_options": {"mine": ["image"]}}),
    ],
)
def test_overrides_of_unexpected_types_are_left_to_kubespawner(section, traits) -> None:
    configure(_c(**{section: traits}))


@pytest.mark.parametrize(
    "trait", ["images", "accelerators", "memory_choices", "preflight", "language"]
)
def test_a_trait_that_is_null_in_values_is_absent(trait) -> None:
    c = _c(GPUSpawner={trait: None})

    configure(c)

    assert getattr(check(c), trait) == getattr(check(_c()), trait)


def test_null_within_offers_is_absent() -> None:
    a100 = {**A100, "memory_choices": None, "scale_up": None, "default": {"gpus": None}}
    written = {"a100": {**a100, "node_selector": {"gpu": "a100", "old": None}}, "v100": None}

    offers, _queue = configuration.offered(_c(GPUSpawner={"accelerators": written}))

    assert list(offers.accelerators) == ["a100"]
    assert offers.accelerators["a100"].node_selector == {"gpu": "a100"}


@pytest.mark.parametrize("configured", [{}, {"namespace": "course"}])
def test_the_servers_namespace_is_the_one_that_kubespawner_would_use(
    configured, monkeypatch
) -> None:
    """Policies count the pods in it. In a cluster, it is the hub's own by default."""
    of_hub = "gpuspawner.compat.kubespawner.default_namespace"
    monkeypatch.setattr(of_hub, lambda: "jhub")

    settings = check(_c(KubeSpawner=configured))

    assert settings.namespace == configured.get("namespace", "jhub")


def test_outside_of_a_cluster_servers_run_in_the_namespace_default() -> None:
    assert check(_c()).namespace == "default"


class QueueingSpawner(KubeSpawner):  # type: ignore[misc]
    def stop(self, now: bool = False) -> Any:
        self.queue = "mine"
        return super().stop(now)


def set_images(spawner: Any) -> None:
    spawner.images = spawner.preflight = []


ON_SPAWNERS = {
    "JupyterHub": {"spawner_class": QueueingSpawner},
    "Spawner": {
        "group_overrides": {"ml": {"groups": ["ml"], "spawner_override": {"gpu_weights": {}}}}
    },
    "KubeSpawner": {
        "pre_spawn_hook": set_images,
        "profile_list": [
            {"display_name": "A", "kubespawner_override": {"policies": {}, "preflight": "off"}}
        ],
    },
}
SET = [
    "Spawner.group_overrides['ml'] sets gpu_weights",
    "KubeSpawner.profile_list[0] sets policies",
    "QueueingSpawner sets queue",
    "pre_spawn_hook sets images",
]


def test_the_log_names_what_sets_a_trait_of_the_whole_hub_on_a_spawner(monkeypatch, caplog) -> None:
    """Traits of one server, as preflight, may be set for one."""
    c = _c(**ON_SPAWNERS)
    configure(c)
    monkeypatch.setattr(runtime, "configured", lambda _: None)
    monkeypatch.setattr(configuration.startup_report, "begin", lambda *_: None)
    monkeypatch.setattr(configuration.garbage, "freeze", lambda: None)

    configuration._begin(c, c.JupyterHub.spawner_class)

    why = ": GPUSpawner's trait of that name is the whole hub's, and stays as it is"
    assert [it for it in caplog.messages if "whole hub" in it] == [text + why for text in SET]


class ComputesDefaults(KubeSpawner):
    greets = Callable(config=True)
    colour = Enum(["red"], config=True)

    @default("greets")
    def _greets(self) -> Any:
        return print

    @default("colour")
    def _colour(self) -> str:
        return "red"


def test_what_a_class_computes_is_not_configured_and_stops_nothing() -> None:
    c = _c(JupyterHub={"spawner_class": ComputesDefaults})
    configure(c)

    own = c.JupyterHub.spawner_class
    assert not [*configuration.shared_names(check(c, own), own)]


def test_nothing_is_said_of_a_hub_that_sets_none() -> None:
    c = _c(KubeSpawner={"pre_spawn_hook": print, "profile_list": [{"display_name": "A"}]})

    assert not [*configuration.shared_names(check(c), GPUSpawner)]


_OWN = {"custom:course:grade": {"description": "Grade"}}


@pytest.mark.parametrize("is_set", [True, False])
def test_our_scope_stands_beside_the_administrators_however_those_are_given(is_set) -> None:
    c = _c(GPUSpawner={"gpu_use": True})
    if is_set:
        c.JupyterHub.custom_scopes = dict(_OWN)
    else:
        c.JupyterHub.custom_scopes.update(_OWN)

    configure(c)

    scopes = JupyterHub(config=c).custom_scopes
    assert set(scopes) == {"custom:course:grade", "custom:gpuspawner:read:use"}


def test_a_hub_that_is_configured_twice_says_everything_once(monkeypatch) -> None:
    """And it knows which traits are as the administrator has set them."""
    c = _c(JupyterHub={"spawner_class": GPUSpawner})
    hub = JupyterHub(config=c)
    monkeypatch.setattr(JupyterHub, "_instance", hub)
    begun: list[str] = []

    def configured(settings: Any) -> Any:
        begun.append("default" if settings.trait_has_value("cpu_environment") else "as set")
        return SimpleNamespace(line=None)

    monkeypatch.setattr(runtime, "configured", configured)
    monkeypatch.setattr(configuration.hub_pages, "announce", lambda *_: begun.append("pages"))
    monkeypatch.setattr(configuration, "_keep_record", lambda *_: begun.append("record"))
    monkeypatch.setattr(configuration.startup_report, "begin", lambda *_: begun.append("report"))
    monkeypatch.setattr(configuration.garbage, "freeze", lambda: None)

    configuration._begin(c, GPUSpawner)
    configuration._begin(c, GPUSpawner)

    assert begun == ["as set", "pages", "record", "report"]


def test_the_record_knows_tolerations_that_are_written_as_a_dictionary(monkeypatch) -> None:
    given: list[object] = []
    monkeypatch.setattr(hub_use, "begin", lambda *its: given.append(its[-1]))
    team = {"key": "team", "operator": "Exists"}
    c = _c(GPUSpawner={"gpu_use": True}, KubeSpawner={"tolerations": {"01-team": team}})

    configuration._keep_record(object(), None, check(c))

    assert given == [[team]]
