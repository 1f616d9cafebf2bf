"""Administrators' code may have attributes with our names."""

from threading import Lock
from typing import Any

import pytest
from kubespawner import KubeSpawner
from traitlets import List

from gpuspawner import GPUSpawner
from gpuspawner.spawner import in_front_of
from gpuspawner.start.refusal import Refusal
from tests.unit.gates.test_accelerators import of
from tests.unit.makers.courses import begin
from tests.unit.makers.hubs import A100
from tests.unit.makers.profile_lists import CPU
from tests.unit.makers.worlds import labelled, node, pod

NAMES = sorted({*GPUSpawner.class_own_traits(config=True), "stock", "gates", "copied", "form"})
NAMES += ["has_own_options", "take_charge", "sources", "endings", "attempt", "in_line"]
NAMES.remove("kueue_queue")  # a text names the queue of this server
LISTS = [name for name, it in GPUSpawner.class_traits().items() if isinstance(it, List)]
NODE = ("Node", labelled(node("a", 2), {"gpu": "a100"}))
ANY: list[Any] = [7, "text", ["a"], {"a": Lock()}, Lock(), True]


@pytest.mark.parametrize("value", ANY, ids=lambda it: type(it).__name__)
async def test_an_administrator_s_attributes_of_any_name_and_value_change_no_gate(
    hub_with, value
) -> None:
    def hook(spawner: Any) -> None:
        for name in NAMES:
            setattr(spawner, name, value)

    hub = hub_with(NODE)
    spawner: Any = of(hub, "alice", pre_spawn_hook=hook, autoscaling="none")

    for _ in range(2):  # the second start comes after the hook
        await begin(spawner, accelerator="a100")
        made = await spawner.get_pod_manifest()
        kept = {it: getattr(spawner, it) for it in NAMES}
        # Traitlets itself makes a list of a text, if the trait is a list.
        assert {it for it in NAMES if kept[it] not in (value, [value])} == set()
        assert {it for it in NAMES if kept[it] == [value] != value} <= set(LISTS)
        assert made.spec.containers[0].resources.limits["nvidia.com/gpu"] == "1"
    assert "2 of 2 free" in await spawner.get_options_form()
    hub.view.put("Pod", pod("somebody-s", 2, on="a"))
    spawner.clear_state()
    with pytest.raises(Refusal):
        await begin(spawner, accelerator="a100")


class CourseSpawner(KubeSpawner):  # type: ignore[misc]
    """A class whose own attributes have our names."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.queue = "early"
        super().__init__(*args, **kwargs)
        self.queue = self.images = self.stock = self.gates = ["ours"]
        self.preflight = self.policies = self.accelerators = self.language = None
        self.language = self.check_gpus = self.scheduling_timeout = ["ours"]

    def gate(self) -> Any:
        return self.gates, self.stock, self.queue


async def test_a_class_of_an_administrator_s_keeps_its_own_attributes(hub_with) -> None:
    hub = hub_with(NODE)
    of(hub, "alice")  # the hub has read its configuration
    spawner: Any = hub.spawner(in_front_of(CourseSpawner), accelerators={"a100": A100})

    assert spawner.gate() == (["ours"], ["ours"], ["ours"])
    spawner.user_options = {"accelerator": "a100"}
    spawner.run_pre_spawn_hook()
    made = await spawner.get_pod_manifest()
    assert made.spec.containers[0].resources.limits["nvidia.com/gpu"] == "1"
    assert spawner.gate() == (["ours"], ["ours"], ["ours"])


async def test_a_profile_may_set_attributes_with_the_names_of_traits(hub_with) -> None:
    override = {"queue": "long", "policies": ["a"], "preflight": 7, "stock": 1, "gates": 2}
    mine = {**CPU, "slug": "mine", "kubespawner_override": {**override, "image": "mine:1"}}
    spawner: Any = hub_with(NODE).spawner(profile_list=[mine])

    await begin(spawner, profile="mine")
    await spawner.load_user_options()

    assert {name: getattr(spawner, name) for name in override} == override
    made = await spawner.get_pod_manifest()
    assert made.spec.containers[0].image == "mine:1"
