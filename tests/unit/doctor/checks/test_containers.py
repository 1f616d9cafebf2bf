"""What the doctor says of servers that wouldn't see their GPUs."""

import pytest

from gpuspawner.doctor.checks import containers
from gpuspawner.messages.administrators import Severity
from tests.unit.makers.files import Files, tried_on
from tests.unit.makers.worlds import labelled, node

TYPE = "node.kubernetes.io/instance-type"
T4 = {"display_name": "T4", "node_selector": {"gpu": "t4"}}


async def found(folder, type_, classes, **offer):
    Files(folder, [labelled(node("n", 1), {"gpu": "t4", TYPE: type_})])
    hub, tried = await tried_on(folder, accelerators={"t4": {**T4, **offer}})
    return list(containers.check(hub.state, tried, classes))


@pytest.mark.parametrize(
    ("classes", "advice"),
    [
        (["nvidia"], "Set its runtime_class (of a profile, runtime_class_name) to 'nvidia' in GPU"),
        ([], "Create the RuntimeClass nvidia"),
    ],
)
@pytest.mark.parametrize("type_", ["k3s", "rke2"])
async def test_on_k3s_and_rke2_a_server_without_the_runtime_class_is_named(
    tmp_path, type_, classes, advice
):
    [finding] = await found(tmp_path, type_, classes)

    assert (finding.id, finding.severity) == ("runtime-class", Severity.WARNING)
    assert finding.text.startswith("t4 has no RuntimeClass, and on k3s or RKE2 (n) no container")
    assert finding.advice.startswith(advice)


async def test_that_servers_have_the_runtime_class_is_told(tmp_path):
    [finding] = await found(tmp_path, "k3s", ["nvidia"], runtime_class="nvidia")

    assert finding.severity is Severity.FINE


async def test_elsewhere_nothing_is_said_of_runtime_classes(tmp_path):
    assert await found(tmp_path, "g4dn.xlarge", ["nvidia"]) == []
