"""Every sentence about policies is in the catalogue, and no word of it is outside."""

import pytest

from gpuspawner import messages
from gpuspawner.availability import Availability
from gpuspawner.policy import denial as policy_denial
from gpuspawner.policy.judging import Standing
from gpuspawner.policy.policies import Limit, Measure, Per, Policy, What
from tests.unit.translating import Pseudo, speaking, untranslated

GIB = 2**30
POLICY = Policy("1", explanation="3")
MEASURES = (*map(Measure, What), Measure(What.GPUS, "1"), Measure(What.GPUS, "nvidia.com/gpu"))


@pytest.mark.parametrize("choice", list(policy_denial.Choice))
def test_what_a_policy_withholds_is_translated(choice):
    with speaking("x", Pseudo()):
        told = messages.policy_denied(policy_denial.Withheld(POLICY, choice, "1"), {"1": "2"})
    assert untranslated(told.text) == []


@pytest.mark.parametrize("servers", [(), ("",), ("", "1", "2")])
@pytest.mark.parametrize("per", list(Per))
@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("asked", [1, 2, 9 * GIB, GIB])
def test_every_limit_that_a_server_breaks_is_translated(measure, per, servers, asked):
    standing = Standing(POLICY, Limit(per, measure, 1 if asked < GIB else 8 * GIB), "1", 1, servers)
    with speaking("x", Pseudo()):
        denial = policy_denial.OverLimit(standing, asked)
        told = messages.policy_denied(denial, {"1": "2"})
        state = messages.state_text(Availability.denied(None, denial))
        uncounted = messages.policy_denied(policy_denial.Uncounted("no word of this"), {})
    assert untranslated(told.text) == []
    assert untranslated(uncounted.text) == []
    assert untranslated(f"{state.word} {state.detail}") == []
