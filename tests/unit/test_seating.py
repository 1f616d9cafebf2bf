"""What ends with a start; tests/hub/test_seats.py has it in a hub."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from gpuspawner.seating import KeepsSeat


async def test_a_method_that_kubespawner_has_renamed_does_not_go_unnoticed() -> None:
    spawner: Any = SimpleNamespace(
        namespace="default",
        pod_name="jupyter-alice",
        pod_reflector=SimpleNamespace(pods={}),
        k8s_api_request_timeout=3,
        log=logging.getLogger("hub"),
    )

    with pytest.raises(AttributeError, match="_make_delete_pod_request"):
        await KeepsSeat._leave_no_pod(spawner)
