"""Ports for the servers of tests that run side by side."""

from __future__ import annotations

import random
import socket
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from localcluster.ports import free_ports


@pytest.fixture
def turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that says whose turn it is, here in a cache of its own."""
    monkeypatch.setenv("GPUSPAWNER_CACHE", str(tmp_path))
    return tmp_path / "next-port"


@pytest.mark.usefixtures("turn")
def test_processes_side_by_side_are_never_given_the_same_port() -> None:
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as processes:
        drawn = [port for ports in processes.map(free_ports, [3] * 100) for port in ports]

    assert len(set(drawn)) == len(drawn) == 300


def test_a_port_that_a_server_listens_on_is_passed_over(turn: Path) -> None:
    [port] = free_ports(1)
    with socket.create_server(("127.0.0.1", port)):
        turn.write_text(str(port))

        assert port not in free_ports(3)


def test_after_the_last_port_the_first_one_follows(turn: Path) -> None:
    turn.write_text("31999")

    ports = free_ports(2)

    assert all(20000 <= port < 32000 for port in ports)
    assert min(ports) < 31999


@pytest.mark.parametrize("text", ["", "70000", "-1", "no port"])
def test_a_file_that_names_no_port_is_begun_anew(turn: Path, text: str) -> None:
    turn.write_text(text)

    assert all(20000 <= port < 32000 for port in free_ports(3))


def test_caches_of_their_own_begin_at_different_ports_though_tests_seed_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []
    for cache in ("one", "two"):
        monkeypatch.setenv("GPUSPAWNER_CACHE", str(tmp_path / cache))
        random.seed(1)
        drawn.append(free_ports(3))

    assert drawn[0] != drawn[1]
