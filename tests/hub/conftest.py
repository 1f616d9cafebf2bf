"""Hubs for the tests of this folder; which JupyterHub they run is the environment's."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from tests.hub.running import RunningHub, running_hub

StartHub = Callable[[str], AbstractContextManager[RunningHub]]


@pytest.fixture(scope="session")
def start_hub(tmp_path_factory: pytest.TempPathFactory) -> StartHub:
    """Start a hub with the given lines of configuration, in a folder of its own."""

    def start(configuration: str) -> AbstractContextManager[RunningHub]:
        folder = tmp_path_factory.mktemp("hub")
        return running_hub(folder, configuration)

    return start
