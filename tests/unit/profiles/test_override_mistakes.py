"""Slips in profiles that are named when the hub starts."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from kubernetes_asyncio.client.models import V1Toleration, V1Volume
from traitlets import Unicode
from traitlets.config import Config

from gpuspawner.configuration import all_slips, check
from gpuspawner.profiles.override_mistakes import Slip
from gpuspawner.spawner import GPUSpawner

GPU = {"extra_resource_limits": {"nvidia.com/gpu": "1"}}
TERM = {"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["t4"]}]}
TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists"}


def profile(**parts: Any) -> Config:
    return Config(KubeSpawner={"profile_list": [{"display_name": "GPU", **parts}]})


def overriding(**override: Any) -> Config:
    return profile(kubespawner_override=override)


def choosing(**choice: Any) -> Config:
    choices = {"one": {"display_name": "1", **choice}}
    return profile(profile_options={"gpus": {"display_name": "GPUs", "choices": choices}})


def writing_in(**write_in: Any) -> Config:
    image = {"display_name": "Image", "unlisted_choice": {"enabled": True, **write_in}}
    return profile(profile_options={"image": image})


def in_group(**override: Any) -> Config:
    return Config(Spawner={"group_overrides": {"ml": {"spawner_override": override}}})


FATAL: dict[str, tuple[Config, str]] = {
    "a number in the environment": (overriding(environment={"N": 1}), "environment: .* N isn't"),
    "the same in a choice": (
        choosing(kubespawner_override={"environment": {"N": 1}}), "of N isn't"),
    "the same in a group": (in_group(environment={"N": 1}), r"group_overrides\['ml'\].*of N isn't"),
    "the same for all servers": (
        Config(Spawner={"environment": {"N": 1}}), "^KubeSpawner.environment: .* of N isn't"),
    "one toleration instead of a list": (
        overriding(tolerations=TOLERATION), "tolerations: write a list"),
    "one term instead of a list": (
        overriding(node_affinity_required=TERM), "node_affinity_required: write a list"),
    "names instead of volumes": (overriding(volumes=["home"]), "volumes: write a list of dict"),
    "expressions that are no list": (
        overriding(node_affinity_required=[{"matchExpressions": TERM["matchExpressions"][0]}]),
        r"profile_list\[0\]: no pod can be made"),
    "resources that are a list": (
        overriding(extra_resource_limits=["nvidia.com/gpu"]), "extra_resource_limits"),
    "a memory that is none": (overriding(mem_limit="16 gigs"), "mem_limit"),
    "a selector that is text": (overriding(node_selector="gpu=t4"), "node_selector"),
    "overrides that are null": (
        profile(kubespawner_override=None),
        r"^KubeSpawner.profile_list\[0\].kubespawner_override: write a dictionary"),
    "overrides that are a list": (
        profile(kubespawner_override=[GPU]), "kubespawner_override: write a dictionary"),
    "overrides of a choice that are null": (
        choosing(kubespawner_override=None), "kubespawner_override: write a dictionary"),
    "overrides of what is written in that are null": (
        writing_in(kubespawner_override=None), "kubespawner_override: write a dictionary"),
    "a label that is a number": (overriding(node_selector={"gpus": 4}), "no pod can be made"),
}  # fmt: skip


@pytest.mark.parametrize("slip", FATAL)
def test_a_profile_that_can_t_work_is_an_error_with_its_place(slip: str) -> None:
    config, text = FATAL[slip]

    [found] = all_slips(check(config))

    assert found.is_fatal
    assert re.search(text, found.text)


WITHOUT_EFFECT: dict[str, tuple[Config, str]] = {
    "a trait beside the overrides": (
        profile(**GPU), "has extra_resource_limits beside kubespawner_override, where it does"),
    "a trait of a choice beside its overrides": (
        choosing(**GPU), "has extra_resource_limits beside kubespawner_override"),
    "misspelt overrides": (
        profile(kubespawner_overide=GPU), "did you mean 'kubespawner_override'?"),
    "a misspelt trait": (
        overriding(extra_resource_limit={"nvidia.com/gpu": "1"}),
        "has no such trait (did you mean 'extra_resource_limits'?)"),
    "a misspelt trait of what is written in": (
        writing_in(kubespawner_override={"imag": "{value}"}),
        "sets imag, but KubeSpawner has no such trait (did you mean 'image'?)"),
    "an expression that is none": (
        writing_in(validation_regex="("), "has a validation_regex that can't be read: missing ), "),
    "an expression that isn't text": (
        writing_in(validation_regex=5), "has a validation_regex that can't be read: it isn't text"),
    "an expression of bytes": (
        writing_in(validation_regex=re.compile(b"a")), "that can't be read: it isn't text"),
}  # fmt: skip


@pytest.mark.parametrize("slip", WITHOUT_EFFECT)
def test_what_does_nothing_is_a_warning_with_what_was_meant(slip: str) -> None:
    config, text = WITHOUT_EFFECT[slip]

    [found] = all_slips(check(config))

    assert not found.is_fatal
    assert text in found.text
    assert found.text.startswith("KubeSpawner.profile_list[0] ")


@pytest.mark.parametrize(
    "config",
    [
        overriding(environment={"A": "b", "C": {"valueFrom": {}}, "D": lambda _: "e"}),
        overriding(tolerations=[TOLERATION], node_affinity_required=[TERM], **GPU),
        overriding(tolerations={"gpu": TOLERATION}, image=lambda _: "lab:1", mem_limit="16G"),
        overriding(tolerations=[V1Toleration(key="gpu")], volumes={"home": V1Volume(name="home")}),
        choosing(kubespawner_override={"node_selector": {"user": "{username}"}}, scale_up=None),
        writing_in(kubespawner_override={"mem_limit": "{value}G"}),
        writing_in(validation_regex="(?i)^quay.io/"),
        writing_in(validation_regex=re.compile("^quay.io/", re.IGNORECASE)),
        profile(profile_options={"a": {"unlisted_choice": {"kubespawner_override": None}}}),
        profile(description="x", slug="gpu", default=True, x_team="ml"),
        # A class of the administrator's may have attributes with these names.
        overriding(queue="long", policies=["students"], preflight=7, stock="a", gates="b"),
        Config(KubeSpawner={"profile_list": lambda _: 1 / 0}),
    ],
)
def test_what_works_is_no_slip(config: Config) -> None:
    assert [*all_slips(check(config))] == []


TWICE = {"a slug": {"display_name": "A", "slug": "gpu"}, "a name": {"display_name": "GPU"}}


@pytest.mark.parametrize("twice", TWICE)
def test_a_profile_with_the_slug_of_another_is_a_warning_with_both_places(twice: str) -> None:
    listed = [{"display_name": "GPU"}, {"display_name": "CPU"}, TWICE[twice]]

    [found] = all_slips(check(Config(KubeSpawner={"profile_list": listed})))

    assert found == Slip(
        "KubeSpawner.profile_list[2] has the slug of KubeSpawner.profile_list[0], "
        "so nobody can choose it",
        is_fatal=False,
    )


SHM = {"shm": {"name": "shm", "emptyDir": {}}}
FOR_ALL: dict[str, Any] = {
    "node_selector": {"pool": "cpu"},
    "volumes": SHM,
    "tolerations": {"gpu": TOLERATION},
    **GPU,
}
NULLS: list[dict[str, Any]] = [
    {"node_selector": {"pool": None}},
    {"volumes": {"shm": None}},
    {"tolerations": {"gpu": None}},
    {"extra_resource_limits": {"nvidia.com/gpu": None}},
]


@pytest.mark.parametrize("nulls", NULLS)
@pytest.mark.parametrize("place", [overriding, in_group])
def test_null_in_a_dictionary_removes_what_every_server_has(
    nulls: dict[str, Any], place: Callable[..., Config]
) -> None:
    config = place(**nulls)
    config.KubeSpawner.update(FOR_ALL)

    assert [*all_slips(check(config))] == []


@pytest.mark.parametrize("nulls", NULLS)
def test_null_in_a_choice_s_dictionary_removes_what_its_profile_has(nulls: dict[str, Any]) -> None:
    choices = {"cpu": {"display_name": "CPU", "kubespawner_override": nulls}}
    options = {"on": {"display_name": "On", "choices": choices}}
    config = profile(kubespawner_override=FOR_ALL, profile_options=options)

    assert [*all_slips(check(config))] == []


def test_what_an_own_class_has_is_no_misspelt_trait() -> None:
    class Own(GPUSpawner):
        image_pull_polic = Unicode()
        tolerationz = ()

    config = overriding(image_pull_polic="x", tolerationz=[])

    assert [*all_slips(check(config, Own))] == []
    assert len([*all_slips(check(config))]) == 2
