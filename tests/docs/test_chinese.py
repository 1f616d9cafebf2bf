"""The page for users in Chinese, compared with the English page and with the translation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.catalogue import forms, read, translations

ROOT = Path(__file__).parents[2]
ENGLISH, CHINESE = ((ROOT / "docs" / it).read_text() for it in ("users.md", "users.zh-CN.md"))
(PO,) = (po for po in translations() if po.parents[1].name == "zh_CN")
SAID = [said for message in read(PO) if message.id for said in forms(message.string or "") if said]


def pattern(said: str) -> str:
    """Return a pattern of a translation with any values."""
    return re.sub(r"\\\{\w+\\\}", "[^。]+?", re.escape(said))


SENTENCES = [pattern(it) for said in SAID if "。" in said for it in said.split("。") if it]
QUOTED = re.findall(r"^> (.*)$", CHINESE, re.MULTILINE)
ROWS = re.findall(r"^\| (.*?) \|", CHINESE, re.MULTILINE)


def is_said(text: str) -> bool:
    """Whether a sentence is one of the translation."""
    return any(re.fullmatch(it, text.removeprefix("gpus：")) for it in SENTENCES)


def test_both_pages_have_the_same_addresses_in_the_same_order():
    assert re.findall('<a id="(.*?)"', CHINESE) == re.findall('<a id="(.*?)"', ENGLISH)


def test_both_pages_have_the_same_chapters():
    levels = [re.findall("^#+", page, re.MULTILINE) for page in (ENGLISH, CHINESE)]

    assert levels[0] == levels[1]
    assert len(re.findall(r"^\|", CHINESE, re.M)) == len(re.findall(r"^\|", ENGLISH, re.M))


def test_each_page_leads_to_the_other():
    assert "](users.zh-CN.md)" in ENGLISH
    assert "](users.md)" in CHINESE


@pytest.mark.parametrize("quoted", QUOTED)
def test_the_chinese_page_quotes_what_the_hub_says(quoted: str):
    assert [it for it in quoted.split("。") if it and not is_said(it)] == []


@pytest.mark.parametrize("row", [it for it in ROWS if it.endswith("。")])
def test_it_tells_how_servers_and_waits_end_as_the_hub_does(row: str):
    text = row.replace("……因为", "您上次的服务器已结束，因为").replace("……", "您上次的服务器")

    assert is_said(text.removesuffix("。"))


def test_it_has_the_words_of_the_form():
    explained = [word for row in ROWS for word in row.split("、")]
    states = [
        "空闲",
        "使用中",
        "已满",
        "新机器",
        "可能可用",
        "离线",
        "不可用",
        "已达上限",
        "不提供",
        "检查中",
        "未知",
    ]

    assert set(states) <= set(explained)
    assert set(states) <= set(SAID)


def test_no_line_breaks_a_paragraph_where_a_browser_would_show_a_space():
    assert re.findall(r"^[^|>:#<\n-].*\n[^|>:#<\n-].*", CHINESE, re.MULTILINE) == []
