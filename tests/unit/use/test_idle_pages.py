"""What an owner reads on the hub's pages of servers whose GPUs aren't used."""

from unittest.mock import Mock

import pytest
from tornado import web

from gpuspawner.language import set_locale
from gpuspawner.use import idle_pages
from tests.unit.use.test_watching import ANN, RULE, Stage

UNUSED = "<strong>Your default server</strong> hasn&#39;t used its GPU for 1 hour."


async def said(patch, rule, used):
    stage = Stage(patch, rule)
    patch.setattr(idle_pages, "keep", lambda _: "/hub/gpuspawner/keep/ann/")
    await stage.look(ann=used, bob=0.0)
    return str(idle_pages.told(stage.watch, stage.users["ann"]))


@pytest.fixture
def culler(monkeypatch):
    """A hub, and what it answers to a culler."""
    stage, handler = Stage(monkeypatch), object.__new__(idle_pages.UsedHandler)
    handler.initialize(stage.watch)
    handler.expanded_scopes, handler.answer = {idle_pages.READ_USE}, Mock()
    monkeypatch.setattr(idle_pages, "_url", lambda it: it.server[0])
    return stage, handler


async def test_a_warning_says_when_and_why_and_leads_to_where_it_is_kept(monkeypatch):
    text = await said(monkeypatch, RULE, 0.0)

    assert text.startswith(UNUSED)
    assert "It will be stopped in 10 minutes" in text
    assert '<a class="text-reset" href="/hub/gpuspawner/keep/ann/">Keep it</a>' in text


async def test_the_page_knows_a_server_also_if_nobody_has_looked_at_it_lately(monkeypatch):
    """Such as in the first minute after its start or the hub's; it is in no danger then."""
    stage, handler = Stage(monkeypatch), object.__new__(idle_pages.KeepHandler)
    handler.initialize(stage.watch)
    handler.find_user = stage.users.get

    def its():
        it = handler._its("ann", "")
        return it and (it.gpus, stage.watch.stops_in(it))

    assert its() == (1, None)
    await stage.look(ann=0.0, bob=0.0)
    assert its() == (1, RULE.warning)
    stage.now += 181
    assert its() == (1, None)
    del stage.pods[ANN]
    assert its() is None


async def test_the_page_has_a_button_until_the_culler_may_have_been_told(monkeypatch):
    stage, handler = Stage(monkeypatch), object.__new__(idle_pages.KeepHandler)
    handler.initialize(stage.watch)

    def button():
        return handler._button(stage.watch.find(ANN))

    await stage.look_each_minute(10, ann=0.0)
    assert button()["gpuspawner_keep"]
    await stage.look(ann=0.0)
    assert button() == {}


async def test_nothing_is_said_of_a_server_that_its_owner_keeps(monkeypatch):
    stage = Stage(monkeypatch)
    await stage.look(ann=0.0, bob=0.0)
    assert stage.watch.keep(ANN)
    stage.now += 600
    await stage.look(ann=0.0, bob=0.0)

    assert idle_pages.told(stage.watch, stage.users["ann"]) == ""
    assert stage.watch.kept_for(stage.watch.find(ANN)) == RULE.kept - 660


async def test_without_a_policy_it_is_said_and_nobody_is_stopped(monkeypatch):
    assert await said(monkeypatch, None, 0.0) == UNUSED


async def test_while_the_hub_can_not_see_pods_the_culler_is_told_nothing(culler):
    stage, handler = culler
    stage.sees_pods = False

    with pytest.raises(web.HTTPError) as told:
        await handler.get()

    assert told.value.status_code == 503


async def test_the_culler_is_told_to_stop_only_who_was_warned_and_is_unused_since(culler):
    stage, handler = culler
    await stage.look_each_minute(10, ann=0.0, bob=0.5)

    stage.now += 60
    await handler.get()
    await stage.look(0, ann=0.0, bob=0.5)
    await handler.get()

    seen = [it.args[0]["servers"] for it in handler.answer.call_args_list]
    assert [it["ann"]["stop"] for it in seen] == [False, True]
    assert [it["ann"]["stops_in_seconds"] for it in seen] == [0, 0]
    assert [it["bob"]["stop"] for it in seen] == [False, False]


@pytest.mark.parametrize("rule", [RULE, None])
async def test_nothing_is_said_of_a_server_that_is_used_or_of_somebody_elses(monkeypatch, rule):
    assert await said(monkeypatch, rule, 0.7) == ""
    assert idle_pages.told(Stage(monkeypatch, rule).watch, None) == ""


async def test_the_hubs_pages_name_the_language_of_what_is_told(monkeypatch):
    set_locale("zh-CN")
    try:
        text = await said(monkeypatch, None, 0.0)
    finally:
        set_locale("en")

    assert text.startswith('<span lang="zh-CN" dir="ltr">')
