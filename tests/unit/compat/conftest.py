"""A database for the tests of this folder."""

import pytest

from tests.unit.compat.hub_database import HubDatabase


@pytest.fixture
def database() -> HubDatabase:
    return HubDatabase()
