"""The first gate, without a hub."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuspawner.preflight.admitted import AdmittedPreflight
from gpuspawner.preflight.decision import Reason, Refuse
from gpuspawner.preflight.proposal import Proposal
from gpuspawner.spawn.refusal import Refusal
from tests.unit.spawn.hubs import StillHub
from tests.unit.spawn.waiters import FULL, Waiting


async def test_a_form_lets_those_on_who_ask_to_wait_if_nobody_can_tell_in_time(
    hub_with: Callable[..., StillHub], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def examine(_: AdmittedPreflight, proposal: Proposal, **_more: object) -> Refuse:
        return Refuse(proposal.grant, Reason.TRY_AGAIN)

    monkeypatch.setattr(AdmittedPreflight, "examine", examine)
    spawner = Waiting(hub_with(*FULL), None).spawner
    fields = {"accelerator": ["a100"], "gpus": ["1"]}

    stored = await spawner.run_options_from_form({**fields, "wait": ["1"]})
    with pytest.raises(Refusal) as refused:
        await spawner.run_options_from_form(fields)

    assert stored["wait"] == "here"
    assert refused.value.slug == "try-again"
