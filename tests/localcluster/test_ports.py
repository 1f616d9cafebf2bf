"""Ports for the servers of tests that run side by side."""

from __future__ import annotations

import random

from localcluster.ports import free_ports


def test_processes_that_seed_the_random_module_alike_draw_different_ports() -> None:
    random.seed(1)
    first = free_ports(3)

    random.seed(1)
    assert free_ports(3) != first
