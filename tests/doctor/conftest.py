"""A hub's namespace for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from localcluster import LocalCluster
from tests.doctor.asking import Hub, hub_on


@pytest.fixture
def hub(cluster: LocalCluster, tmp_path: Path) -> Iterator[Hub]:
    """A namespace with the rights of a hub, for one test."""
    with hub_on(cluster, tmp_path) as made:
        yield made
