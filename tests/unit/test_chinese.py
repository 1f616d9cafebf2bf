"""Sentences in Chinese keep the rules of its typesetting, also where they are put together."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gpuspawner import language, messages
from gpuspawner.messages import OnForm, idle
from gpuspawner.messages.policies import policy_denied
from gpuspawner.messages.starts import preview
from gpuspawner.messages.words import duration
from gpuspawner.offers.user_options import GPURequest, parse
from gpuspawner.policies import limits as policy_limits
from gpuspawner.policies.limits import Standing
from gpuspawner.policies.policies import Limit, Per, Policy
from gpuspawner.preflight.availability import Availability, State
from tests.unit.makers.translating import speaking
from tests.unit.test_translations import (
    MEASURES,
    OFFERS,
    OTHER_OFFERS,
    bodies,
    refusals,
    room,
)
from tools.catalogue import forms, read, translations

HAN, LATIN, FULL = "[\u4e00-\u9fff]", "[A-Za-z0-9]", "[，。：；！？、（）]"
SLIP = re.compile(
    rf"{HAN} +{HAN}|{HAN}{LATIN}|{LATIN}{HAN}| {FULL}|{FULL} |{HAN}[,.;:!?]|{FULL}[，。：；、]"
)
"""What no Chinese text has: spaces between characters or around full-width punctuation, none beside
Latin letters and numbers, punctuation of half width, and two marks in a row."""
CLOSED = re.compile("）[，。：；、]")  # but for those after a parenthesis

(PO,) = (po for po in translations() if po.parents[1].name == "zh_CN")
CHINESE = language._catalogue("zh_CN")


def slips(text: str) -> list[str]:
    return SLIP.findall(CLOSED.sub("）", text))


@pytest.mark.parametrize("text", ["需要 3 分钟。", "“A100”目前已满。", "共 2 个（1 个空闲）。"])
def test_a_text_by_the_rules_has_no_slip(text):
    assert slips(text) == []


@pytest.mark.parametrize("text", ["需要3 分钟", "需要 大约", "没有。 请", "没有.", "没有，。"])
def test_a_text_against_the_rules_has_one(text):
    assert slips(text)


def test_every_translation_is_by_the_rules():
    assert [
        said for it in read(PO) if it.id for said in forms(it.string or "") if slips(said)
    ] == []


@given(refusals)
def test_every_refusal_is_by_the_rules(decision):
    assume(decision.grant.accelerator or not decision.gpus)  # else the GPUs have no name
    with speaking(*CHINESE):
        for message in (messages.refusal(decision), OnForm.of_refusal(decision).message):
            assert slips(message.text) == []
        assert slips(preview(decision).text) == []


@given(bodies, st.sampled_from(OTHER_OFFERS))
def test_every_error_in_options_is_by_the_rules(raw, offers):
    with speaking(*CHINESE):
        errors = parse(raw, offers)
        told = () if isinstance(errors, GPURequest) else (messages.correction(errors),)
    for message in told:
        assert slips(message.text) == []


@pytest.mark.parametrize("servers", [(), ("",), ("", "1", "2")])
@pytest.mark.parametrize("per", list(Per))
@pytest.mark.parametrize("measure", MEASURES)
def test_every_limit_is_by_the_rules(measure, per, servers):
    standing = Standing(Policy("1"), Limit(per, measure, 1), "1", 1, servers)
    with speaking(*CHINESE):
        told = policy_denied(policy_limits.OverLimit(standing, 2), {"1": "2"})
    assert slips(told.text) == []


@pytest.mark.parametrize("state", set(State) - {State.LIMITED, State.WITHHELD})
def test_every_state_is_by_the_rules(state):
    gpus = room("nvidia.com/gpu", 1, 1, 2, 2, 4)
    with speaking(*CHINESE):
        for accelerator in OFFERS.accelerators.values():
            told = messages.state_text(Availability(accelerator, state, gpus))
            assert slips(messages.about(told.word, told.detail)) == []


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(90, "2 分钟"), (8 * 3600, "8 小时"), (5400, "1 小时 30 分钟"), (0, "不到 1 分钟")],
)
def test_a_duration_is_named_as_in_chinese(seconds, expected):
    with speaking(*CHINESE):
        assert duration(seconds) == expected


def test_what_keeping_a_server_does_is_by_the_rules():
    with speaking(*CHINESE):
        assert slips(idle.keeps(3600, 2)) == []
