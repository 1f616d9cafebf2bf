"""A database for the tests of this folder, and their mark."""

from pathlib import Path

import pytest

from tests.unit.makers.hub_database import HubDatabase

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run all tests of this folder on each hub: what differs between hubs is in this package."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.each_hub)


@pytest.fixture
def database() -> HubDatabase:
    return HubDatabase()
