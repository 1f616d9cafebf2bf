"""Fixtures for tests of profiles."""

from typing import Any

import pytest

from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.profiles import page_availability
from gpuspawner.profiles.pod_of_choice import try_out


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collects the owner of each pod that KubeSpawner makes for a page."""
    owners: list[str] = []

    async def counted(spawner: Any, *rest: Any) -> Proposal:
        owners.append(spawner.user.name)
        return await try_out(spawner, *rest)

    monkeypatch.setattr(page_availability, "try_out", counted)
    return owners
