"""The gates note what happens to a server, with what it was to get."""

import pytest

from gpuspawner.start.refusal import Refusal
from gpuspawner.use.record import Record
from tests.unit.makers.hubs import A100, StillHub
from tests.unit.makers.restarts import pod, set_pod
from tests.unit.makers.worlds import labelled, node

TRAITS = {"accelerators": {"a100": A100}, "autoscaling": "none"}


class Noting:
    """A spawner of a hub with a single GPU, and what is noted."""

    def __init__(self, patch, **traits):
        hub = StillHub(patch, ("Node", labelled(node("a", 1), {"gpu": "a100"})))
        self.spawner = hub.spawner(**TRAITS, **traits)
        self.record = Record()
        hub.runtime(self.spawner).record = self.record.note

    async def begin(self, gpus):
        self.spawner.user_options = {"accelerator": "a100", "gpus": gpus}
        begun = self.spawner.run_pre_spawn_hook()
        if begun is not None:
            await begun

    @property
    def facts(self):
        return [(it.happened.value, it.reason, it.accelerator, it.gpus) for it in self.record.facts]


@pytest.fixture
def noting(monkeypatch):
    return Noting(monkeypatch)


async def test_a_refused_start_says_why_and_what_it_was_to_get(noting):
    with pytest.raises(Refusal):
        await noting.begin(2)

    assert noting.facts == [("refused", "impossible", "a100", 2)]


async def test_a_refused_form_is_noted_like_a_refused_start(noting):
    with pytest.raises(Refusal):
        await noting.spawner.options_from_query({"opt-accelerator": ["a100"], "opt-gpus": ["2"]})

    assert noting.facts == [("refused", "impossible", "a100", 2)]


async def test_a_server_is_noted_from_its_grant_to_its_end(noting):
    await noting.begin(1)
    set_pod(noting.spawner, pod())
    state = noting.spawner.gpuspawner_gates.server_state
    state.answers()
    state.polled(1, pod("EvictionByEvictionAPI"))
    noting.spawner.clear_state()

    assert noting.facts == [
        ("granted", "", "a100", 1),
        ("started", "", "a100", 1),
        ("ended", "evicted", "a100", 1),
    ]


async def test_a_granted_start_that_comes_to_nothing_ends(noting):
    await noting.begin(1)
    noting.spawner.clear_state()
    noting.spawner.clear_state()

    assert noting.facts[1:] == [("ended", "not-started", "a100", 1)]


async def test_the_server_of_a_renamed_user_ends_by_the_name_with_which_it_started(noting):
    before = noting.spawner.user.name

    await noting.begin(1)
    noting.spawner.user.name = "renamed"
    noting.spawner.gpuspawner_gates.server_state.answers()
    noting.spawner.clear_state()
    await noting.begin(1)

    assert [(it.happened.value, it.user) for it in noting.record.facts] == [
        ("granted", before),
        ("started", before),
        ("ended", before),
        ("granted", "renamed"),
    ]


async def test_what_is_only_warned_of_is_noted_with_the_reason_for_a_no(monkeypatch):
    noting = Noting(monkeypatch, preflight="warn")

    await noting.begin(2)

    assert noting.facts == [("overruled", "impossible", "a100", 2), ("granted", "", "a100", 2)]


async def test_a_record_that_fails_keeps_nobody_from_a_server(noting, caplog):
    runtime = noting.spawner.hub.runtime(noting.spawner)
    runtime.record = {}.__getitem__

    await noting.begin(1)

    assert "Can't note that a server was granted" in caplog.text
