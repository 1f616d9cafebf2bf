"""The first gate, without a hub."""

import asyncio
import io
import logging
from typing import Any

import pytest
from tornado import web

from gpuspawner.form.alternative_button import KEPT
from gpuspawner.gates import form_gate
from gpuspawner.gates.form_gate import NoOptionsError
from gpuspawner.gates.preview import preview
from gpuspawner.messages import OnForm
from gpuspawner.preflight.decision import Reason, Refuse
from gpuspawner.preflight.preflight import Preflight
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.preflight.rejection import Of, OverQuota, Rejection
from gpuspawner.start import submitted_form
from gpuspawner.start.refusal import Refusal
from tests.unit.makers.courses import NODES, OFFERS, Course, Train, refused_query
from tests.unit.makers.policy_pods import container, server_pod
from tests.unit.makers.profile_lists import CPU
from tests.unit.makers.profile_lists import GPU as PROFILE
from tests.unit.makers.waiters import FULL, Waiting

V100 = [
    'aria-describedby="gpuspawner-card-2-about gpuspawner-card-2-state" checked',
    'value="torch" data-label="torch" selected',
]
TWO = ['value="gpu" checked', 'value="two" selected']
FIELDS = {"accelerator": ["a100"], "gpus": ["1"]}
_FULL_QUOTA = Rejection(Of.POD, OverQuota(()), "exceeded quota")


def no_more_gpus(pod: Any) -> Any:
    """Reject pods with GPUs."""
    amounts = [it.get("resources", {}).get("limits", {}) for it in pod["spec"]["containers"]]
    return _FULL_QUOTA if any("nvidia.com/gpu" in it for it in amounts) else pod


async def refused_form(spawner: Any, fields: dict[str, list[str]]) -> Refusal:
    """Let the first gate refuse a form."""
    with pytest.raises(Refusal) as raised:
        await spawner.run_options_from_form(fields)
    return raised.value


def shown_again() -> OnForm:
    """Return what the redrawn form shows."""
    draft = submitted_form.current()
    assert draft
    assert draft.refused
    return draft.refused


@pytest.fixture
def spawner(hub_with) -> Any:
    """That of somebody who wants to have the only GPU, which is in use; there is a line."""
    return Waiting(hub_with(*FULL), None).spawner


@pytest.fixture
def try_again(monkeypatch) -> None:
    """Nobody can tell in time."""

    async def examine(_: Preflight, proposal: Proposal, _admission: object) -> Refuse:
        return Refuse(proposal.grant, Reason.TRY_AGAIN)

    monkeypatch.setattr(Preflight, "examine", examine)


@pytest.mark.usefixtures("try_again")
async def test_a_form_lets_those_on_who_ask_to_wait_if_nobody_can_tell_in_time(spawner) -> None:
    stored = await spawner.run_options_from_form({**FIELDS, "wait": ["1"]})

    assert stored["wait"] == "here"
    assert (await refused_form(spawner, FIELDS)).slug == "try-again"


async def test_who_ticks_the_form_s_box_waits_even_with_the_page_closed(spawner) -> None:
    ticked = {**FIELDS, "wait_even_if_away": ["1"]}

    stored = await spawner.run_options_from_form({**ticked, "wait": ["1"]})

    assert stored["wait"] == "anyway"
    assert (await refused_form(spawner, ticked)).slug == "busy"


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(
    ("queue", "place"),
    [({"places_per_user": 2}, 1), (True, 0), ({"places_per_user": 2, "places": 1}, 0)],
    ids=["one is left", "no more for her", "the line is full"],
)
async def test_a_form_offers_no_place_that_the_line_would_refuse(hub_with, queue, place) -> None:
    hub = hub_with(*FULL)
    first, second = (Waiting(hub, True, queue=queue) for _ in range(2))
    await first.begin()
    second.spawner.pod_name = "jupyter-alice--train"

    assert "in use" in (await refused_form(second.spawner, FIELDS)).text

    assert shown_again().place == place
    assert first.place.leave()
    await first.refused()


@pytest.mark.usefixtures("try_again")
async def test_a_form_lets_nobody_on_whom_the_hub_has_no_line_for(hub_with) -> None:
    """The next page could only say the same, and the form would be gone."""
    only_t4 = {"accelerators": ["t4"]}
    spawner = Waiting(hub_with(*FULL), None, queue=only_t4).spawner

    assert (await refused_form(spawner, {**FIELDS, "wait": ["1"]})).slug == "try-again"


@pytest.mark.parametrize("accelerator", ["t4", "h100"])
async def test_a_function_that_returns_no_options_lets_the_last_ones_count(
    hub_with, accelerator
) -> None:
    """As in JupyterHub, which then starts the server with the options that it has stored.

    The start says what of them isn't offered any more.
    """
    spawner = hub_with(*NODES).spawner(**OFFERS, options_from_form=print)
    spawner.user_options = {"accelerator": accelerator, "gpus": 2}

    assert await spawner.run_options_from_form({"course": ["ml"]}) is None


async def test_the_last_options_are_refused_on_the_form_if_they_cant_start(spawner) -> None:
    spawner.options_from_form = print
    spawner.user_options = {"accelerator": "a100", "gpus": 1}

    assert (await refused_form(spawner, {"course": ["ml"]})).slug == "busy"


async def test_a_form_refuses_although_a_class_has_an_attribute_of_that_name(spawner) -> None:
    spawner.preflight = 7  # an administrator's own

    assert await refused_form(spawner, FIELDS)


@pytest.mark.each_python
async def test_only_one_of_several_concurrent_requests_starts_the_server(hub_with) -> None:
    spawner = hub_with().spawner()
    end = asyncio.Event()

    async def request() -> None:
        submitted_form.keep({})
        form_gate.claim_start(spawner)
        await end.wait()

    first = asyncio.create_task(request())
    second = asyncio.create_task(request())
    with pytest.raises(Refusal, match="already starting"):
        await second

    end.set()
    await first
    await asyncio.create_task(request())


async def test_the_hub_redraws_the_form_of_the_server_that_was_asked_for(hub_with) -> None:
    """The hub has the default server's spawner draw it, whose own server doesn't count there."""
    course, policies = Course(hub_with(*NODES)), {"all": {"gpus_per_user": 2}}
    default, train = course.spawner(policies), course.spawner(policies, of=Train)
    train.user = default.user
    course.show(default, 2)
    asked = await train.get_options_form()

    await refused_query(train, accelerator="t4", gpus="1")
    redrawn = await default.get_options_form()

    line = "You&#39;re using 2 of your 2 GPUs."
    assert line in asked
    assert line in redrawn


@pytest.mark.parametrize(("used", "gpus"), [(7, [1, 0]), (8, [0])])
async def test_a_form_that_a_limit_refuses_offers_what_the_limit_leaves(
    hub_with, used, gpus
) -> None:
    course = Course(hub_with(*NODES))
    spawner = course.spawner({"course": {"gpus_per_user": 8}})
    course.put(spawner, "alice", "train", used)

    refused = await refused_query(spawner, accelerator="t4", gpus="2")

    shown = refused.on_form
    assert [it.grant.gpus for it in shown.alternatives] == gpus
    assert (shown.message.text, shown.errors, shown.place) == (refused.text, (), 0)


async def test_a_form_that_a_limit_of_memory_refuses_offers_servers_with_less_of_it(
    hub_with,
) -> None:
    """One with its default instead, which the limit may deny too, would be refused again."""
    course = Course(hub_with(*NODES))
    sizes = {"memory_choices": ["16G", "4G"]}
    spawner = course.spawner({"course": {"memory_per_user": "20G"}}, **sizes)
    pod = server_pod("alice", "train", containers=[container(memory="14G")])
    course.put_pod(spawner, "alice", "train", pod)

    refused = await refused_query(spawner, accelerator="t4", gpus="2", memory="16G")

    offered = [(it.grant.gpus, it.grant.memory) for it in refused.on_form.alternatives]
    assert offered == [(2, 4_000_000_000), (0, 4_000_000_000)]


async def test_a_form_that_a_limit_refuses_offers_nothing_that_admission_would_reject(
    hub_with,
) -> None:
    course = Course(hub_with(*NODES))
    course.hub.admission.answer = no_more_gpus
    spawner = course.spawner({"course": {"gpus_per_user": 8}})
    course.put(spawner, "alice", "train", 7)

    refused = await refused_query(spawner, accelerator="t4", gpus="2")

    assert [it.grant.gpus for it in refused.on_form.alternatives] == [0]


async def test_who_waits_for_a_limit_asks_admission_for_nothing_else(hub_with) -> None:
    course = Course(hub_with(*NODES))
    spawner = course.spawner({"course": {"gpus_per_user": 8}}, queue=True, preflight="off")
    course.put(spawner, "alice", "train", 8)
    fields = {"accelerator": ["t4"], "gpus": ["1"], "wait": ["1"]}

    stored = await spawner.run_options_from_form(fields)

    assert stored["wait"] == "here"
    assert course.hub.admission.asked == []


@pytest.mark.each_hub
async def test_the_address_of_a_refusal_that_is_opened_again_starts_no_server(spawner) -> None:
    """It has the hub's token, which the hub passes on as an option."""
    with pytest.raises(Refusal) as shown:
        await spawner.options_from_query({"_xsrf": ["token"]})

    assert (shown.value.status_code, shown.value.jupyterhub_message) == (200, "")
    assert submitted_form.current() is None


@pytest.mark.parametrize(
    ("traits", "kept", "shown"),
    [
        (OFFERS, "accelerator=v100&image=torch", V100),
        ({"profile_list": [CPU, PROFILE]}, "profile=gpu&profile-option-gpu--gpus=two", TWO),
    ],
    ids=["cards", "profiles"],
)
async def test_a_form_to_which_a_stopped_server_s_button_comes_back_has_the_choices_from_before(
    traits, kept, shown, hub_with
) -> None:
    spawner = hub_with(*NODES).spawner(**traits)

    with pytest.raises(NoOptionsError):
        await spawner.options_from_query({f"opt-{KEPT}": [kept]})
    form = " ".join((await spawner.get_options_form()).split())

    assert [it for it in shown if it in form] == shown
    assert 'role="alert"' not in form


async def test_kubespawner_is_asked_about_no_field_of_ours(hub_with, caplog) -> None:
    """It would warn of each in the hub's log."""
    spawner = hub_with(*NODES).spawner(profile_list=[CPU, PROFILE], queue=True)
    ours = {"wait": ["1"], "wait_even_if_away": ["1"]}

    stored = await spawner.run_options_from_form({"profile": ["gpu"], **ours})

    assert stored == {"profile": "gpu", "wait": "anyway"}
    assert "unrecognized" not in caplog.text


async def test_the_hub_logs_no_failure_if_an_address_without_options_is_opened_first(
    spawner, monkeypatch
) -> None:
    written = io.StringIO()
    monkeypatch.setattr(spawner.log, "handlers", [logging.StreamHandler(written)])

    try:
        await spawner.options_from_query({"_xsrf": ["token"]})
    except Refusal:  # as the hub does
        spawner.log.exception("Failed to spawn single-user server with query arguments")

    assert written.getvalue() == ""


@pytest.mark.parametrize(("objects", "is_foretold"), [(FULL, True), (NODES, False)])
async def test_only_a_refusal_that_the_form_s_answers_repeat_goes_at_the_first_of_them(
    hub_with, objects, is_foretold
) -> None:
    """For these, admission isn't asked about what has room: a quota may still refuse it."""
    hub = hub_with(*objects)
    hub.admission.answer = no_more_gpus
    spawner = hub.spawner(**OFFERS)
    asked = {"accelerator": "t4", "gpus": 1}

    await refused_form(spawner, {name: [it] for name, it in asked.items()})

    found, _ = await preview(spawner.gpuspawner_gates.sources.accelerators, asked, "")
    assert isinstance(found, Refuse) == shown_again().is_foretold == is_foretold


async def test_functions_find_in_a_form_what_the_auth_state_hook_sets_whichever_spawner_gets_it(
    hub_with,
) -> None:
    """The hub has drawn the form with another one: before its restart, or before a failed start."""
    ran = []

    def tells(spawner: Any, state: object) -> None:
        ran.append(state)
        spawner.userdata = {"groups": ["cpu"], "gpus": 1}

    def profiles(spawner: Any) -> list[dict[str, object]]:
        return [{**CPU, "slug": it} for it in spawner.userdata["groups"]]

    spawner = Course(hub_with(*NODES)).spawner(
        lambda it: {"all": {"gpus_per_user": it.userdata["gpus"]}},
        auth_state_hook=tells,
        profile_list=profiles,
    )

    form = await spawner.gpuspawner_gates.sources.offered()
    assert [it["profile"] for it in await form.states()] == ["cpu"]
    assert await spawner.run_options_from_form({"profile": ["cpu"]}) == {"profile": "cpu"}
    assert ran == [None]


async def test_a_form_s_question_runs_no_hook_while_the_server_starts_or_runs(hub_with) -> None:
    spawner = hub_with(*NODES).spawner(auth_state_hook=lambda *_: pytest.fail("It runs."))
    spawner._spawn_pending = True

    await spawner.gpuspawner_gates.sources.offered()


async def test_a_form_runs_no_auth_state_hook_that_the_hub_has_run_for_the_spawner(
    hub_with,
) -> None:
    ran: list[object] = []
    spawner = hub_with(*NODES).spawner(auth_state_hook=lambda _, state: ran.append(state))
    await spawner.run_auth_state_hook({"groups": []})

    for _ in range(2):
        await spawner.run_options_from_form({})

    assert ran == [{"groups": []}]


@pytest.mark.parametrize("reads", [lambda it: it.handler.request, lambda _: asyncio.sleep(9)])
async def test_an_auth_state_hook_that_needs_a_page_or_hangs_keeps_nobody_from_a_start(
    hub_with, caplog, monkeypatch, reads
) -> None:
    """The hub runs it again for the start; only then, and for a page, it sets the handler."""
    monkeypatch.setattr("gpuspawner.gates.sources.PATIENCE", 0.01)
    spawner = hub_with(*NODES).spawner(auth_state_hook=lambda it, _: reads(it))

    with caplog.at_level(logging.WARNING):
        assert await spawner.gpuspawner_gates.sources.offered() is not None
        assert await spawner.run_options_from_form({}) is not None
    assert "The auth_state_hook failed for the form of alice" in caplog.text


async def test_an_answer_by_http_of_an_auth_state_hook_reaches_who_sends_the_form(hub_with) -> None:
    def forbids(*_: object) -> None:
        raise web.HTTPError(403, "Not in the course")

    spawner = hub_with(*NODES).spawner(auth_state_hook=forbids)

    with pytest.raises(web.HTTPError, match="Not in the course"):
        await spawner.run_options_from_form({})


async def test_a_form_waits_for_the_auth_state_hook_that_its_question_runs(hub_with) -> None:
    """A hook that has run twice at once may have left twice what it adds."""

    async def mounts(spawner: Any, _: object) -> None:
        spawner.volumes = [{"name": "home"}]
        await asyncio.sleep(0)
        spawner.volumes.append({"name": "course"})

    spawner = hub_with(*NODES).spawner(auth_state_hook=mounts)
    offered = spawner.gpuspawner_gates.sources.offered()

    await asyncio.gather(offered, spawner.run_options_from_form({}))

    assert [it["name"] for it in spawner.volumes] == ["home", "course"]
