"""The accelerators that tests charge for, and what a pod takes of them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from gpuspawner.offers import Accelerator
from gpuspawner.policy.charges import Charge, Meter
from gpuspawner.policy.policies import Measure, What
from gpuspawner.scheduling import Rules
from tests.unit.policy.pods import GPU, MIG, server_pod

GIB = 2**30
GPUS, SERVERS = Measure(What.GPUS), Measure(What.GPU_SERVERS)
MEMORY, CPU = Measure(What.MEMORY), Measure(What.CPU)
ACCELERATORS = (
    Accelerator("any", "Any", GPU),
    Accelerator("t4", "T4", GPU, node_selector={"gpu": "t4"}),
    Accelerator("a100", "A100", GPU, node_selector={"gpu": "a100"}),
    Accelerator("a100-big", "A100", GPU, node_selector={"gpu": "a100"}),
    Accelerator("slice", "Slice", MIG, node_selector={"gpu": "a100"}),
    Accelerator("fpga", "FPGA", "example.com/fpga"),
)
METER = Meter(Rules.of_version("1.36"), ACCELERATORS, {MIG: Fraction(1, 7)})


def gpus(of: str) -> Measure:
    return Measure(What.GPUS, of)


def charged(**spec: object) -> dict[Measure, Any]:
    """What a pod takes, without zeros."""
    amounts = METER.charge(server_pod(**spec)).amounts  # type: ignore[arg-type]
    return {measure: amount for measure, amount in amounts.items() if amount}


def of_accelerators(charge: Charge) -> dict[str, Any]:
    found = {it.key: charge.of(gpus(it.key)) for it in ACCELERATORS}
    return {key: amount for key, amount in found.items() if amount}
