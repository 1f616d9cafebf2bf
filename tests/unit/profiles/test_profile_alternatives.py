"""Starts of profiles: pools that grow, refusals with alternatives, administrators' functions."""

import asyncio
from typing import Any

import kubespawner
import pytest
from jupyterhub import orm
from jupyterhub.utils import maybe_future
from msgspec.structs import replace
from tornado import web

from gpuspawner.kube.objects import Manifest
from gpuspawner.preflight.decision import Refuse, Wait
from gpuspawner.preflight.dry_runs import TooManyDryRunsError
from gpuspawner.profiles.profile_alternatives import GivingUp
from gpuspawner.start.refusal import Refusal
from tests.unit.makers.hub_database import HubDatabase
from tests.unit.makers.hubs import Script, StillHub, tolerating
from tests.unit.makers.profile_clusters import ONE_TAKEN, TAINTED, TAKEN_TOO, TWO_GPUS, profiles_of
from tests.unit.makers.profile_lists import CPU, GPU
from tests.unit.makers.worlds import node

POD: Manifest = {"spec": {"containers": []}}
NO_POD_YET: Manifest = {"spec": None}


@pytest.mark.parametrize(
    ("pod", "answer", "later"),
    [(POD, POD, POD), (POD, None, None), (NO_POD_YET, None, POD)],
    ids=["an answer", "no answer", "a pod that can't be made yet"],
)
async def test_admission_is_asked_until_it_has_not_answered_about_a_pod(pod, answer, later) -> None:
    admission = Script()
    admission.answer = lambda _: answer
    giving_up = GivingUp(admission)
    assert await giving_up.admit("jhub", pod) == answer

    admission.answer = lambda pod: pod

    assert await giving_up.admit("hub", POD) == later
    assert admission.asked == [("jhub", pod), ("hub", POD)][: 1 + (later is not None)]


class NoTurn(Script):
    async def admit(self, namespace: str, pod: Manifest) -> Manifest:
        self.asked.append((namespace, pod))
        raise TooManyDryRunsError


class Slow(Script):
    async def admit(self, namespace: str, pod: Manifest) -> Manifest:
        self.asked.append((namespace, pod))
        await asyncio.Event().wait()
        return pod


@pytest.mark.parametrize("admission", [NoTurn(), Slow()], ids=["no turn", "slow answers"])
async def test_after_too_many_or_slow_dry_runs_admission_is_not_asked_again(admission) -> None:
    giving_up = GivingUp(admission, seconds=0.01)

    for _ in range(2):
        with pytest.raises(TooManyDryRunsError):
            await giving_up.admit("jhub", POD)
    assert len(admission.asked) == 1


async def test_a_refusal_names_at_most_three_alternatives_nearest_first(hub_with) -> None:
    more = [{**CPU, "display_name": f"<b>No. {number}</b> &amp; more"} for number in range(5)]
    hub = hub_with(TWO_GPUS, ONE_TAKEN)

    text, html = await _refused(hub, [GPU, *more], {"profile": "gpu", "gpus": "two"})

    assert text == (
        "“GPU server” with “Two” can't start right now. "
        "You asked for 2 × GPU, but only 1 is free right now. "
        "You can start one of these instead: "
        "“GPU server” with “One”; “No. 0 & more”; “No. 1 & more”."
    )
    assert "“No. 0 &amp; more”" in html


async def test_a_choice_is_no_alternative_to_itself(hub_with) -> None:
    """The defaults are chosen if the options name no choice, as by REST."""
    hub = hub_with(TWO_GPUS, ONE_TAKEN, TAKEN_TOO)
    spawner = hub.spawner(profile_list=[GPU])
    choice = await profiles_of(spawner).resolve({"profile": "gpu"})
    decision = hub.runtime(spawner).preflight.decider.check(choice.proposal)
    assert isinstance(decision, Refuse)

    await choice.explain(replace(decision, after_admission=True), hub.admission)

    tried = [pod["spec"]["containers"][0]["resources"]["limits"] for _, pod in hub.admission.asked]
    assert [it["nvidia.com/gpu"] for it in tried] == ["2"]


async def test_a_refusal_without_alternatives_says_what_to_do(hub_with) -> None:
    text, _ = await _refused(hub_with(TWO_GPUS, ONE_TAKEN, TAKEN_TOO), [GPU], {})

    assert text == (
        "“GPU server” with “One” can't start right now. "
        "No GPU is free right now: all 2 are in use. Please try again a little later."
    )


async def _refused(
    hub: StillHub, listed: list[dict[str, Any]], options: dict[str, Any]
) -> tuple[str, str]:
    spawner = hub.spawner(profile_list=listed)
    choice = await profiles_of(spawner).resolve(options)
    decision = hub.runtime(spawner).preflight.decider.check(choice.proposal)
    assert isinstance(decision, Refuse)
    message, on_form = await choice.explain(decision, hub.admission)
    if on_form.profiles:
        assert message.text.startswith(f"{on_form.message.text} You can start ")
    else:
        assert on_form.message == message
    return message.text, str(message.html)


async def test_a_start_waits_for_a_profile_s_pool_that_can_grow(hub_with) -> None:
    grows = {**GPU, "scale_up": {"max_nodes": 2, "minutes": 8}}

    for objects in ([], [TWO_GPUS, ONE_TAKEN, TAKEN_TOO]):
        hub = hub_with(*objects)
        spawner = hub.spawner(profile_list=[grows])

        form = await profiles_of(spawner).form()
        assert "New machine</span> takes about 8 minutes to start" in form
        choice = await profiles_of(spawner).resolve({})
        assert isinstance(hub.runtime(spawner).preflight.decider.check(choice.proposal), Wait)
    full = hub_with(TWO_GPUS, ONE_TAKEN, TAKEN_TOO, ("Node", node("b", 0)))
    assert "In use" in await profiles_of(full.spawner(profile_list=[grows])).form()


async def test_a_profile_s_node_affinity_selects_its_pool(hub_with) -> None:
    term = {"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["a100"]}]}
    by_affinity = {"extra_resource_limits": {"nvidia.com/gpu": "1"}}
    grows = {
        "display_name": "GPU",
        "kubespawner_override": {**by_affinity, "node_affinity_required": [term]},
        "scale_up": {"max_nodes": 1, "minutes": 8},
    }
    others = [("Node", {**node(f"cpu-{n}", 0), "metadata": {"name": f"cpu-{n}"}}) for n in range(3)]

    form = await profiles_of(hub_with(*others).spawner(profile_list=[grows])).form()

    assert "New machine" in form


@pytest.mark.parametrize("kind", ["plain", "coroutine", "returns a coroutine", "object"])
async def test_a_gate_that_waits_calls_a_function_once(kind, hub_with) -> None:
    done = []

    def plain(_: object) -> list[Any]:
        done.append("called")
        return [GPU]

    async def coroutine(spawner: object) -> list[Any]:
        await asyncio.sleep(0)
        return plain(spawner)

    def returns_a_coroutine(spawner: object) -> Any:
        return coroutine(spawner)

    class Function:
        async def __call__(self, spawner: object) -> list[Any]:
            return await coroutine(spawner)

    hub = hub_with(TAINTED)
    hub.admission.answer = tolerating
    listed = {
        "plain": plain,
        "coroutine": coroutine,
        "returns a coroutine": returns_a_coroutine,
        "object": Function(),
    }[kind]
    spawner = hub.spawner(profile_list=listed)

    rest = spawner.run_pre_spawn_hook()
    assert hub.admission.asked == []
    await rest
    await asyncio.sleep(0)  # lets leftover tasks run

    assert done == ["called"]
    assert len(hub.admission.asked) == 1
    assert spawner.gpuspawner_gates.attempt is not None


async def test_an_administrator_s_http_error_passes_unchanged(hub_with) -> None:
    def not_for_you(_: object) -> list[dict[str, Any]]:
        raise web.HTTPError(403, "Only for members of the course")

    spawner = hub_with(TWO_GPUS).spawner(profile_list=not_for_you)

    with pytest.raises(web.HTTPError, match="Only for members"):
        await spawner.get_options_form()


async def test_a_failing_function_is_reported_and_logged(hub_with, caplog) -> None:
    def fails(_: object) -> list[dict[str, Any]]:
        raise LookupError("the directory of courses")

    with pytest.raises(Refusal, match="an error in the hub's configuration"):
        await hub_with(TWO_GPUS).spawner(profile_list=fails).get_options_form()
    assert "LookupError: the directory of courses" in caplog.text


async def test_options_that_a_hook_adds_stay_and_are_not_stored(hub_with, monkeypatch) -> None:
    """As with KubeSpawner, later hooks of the start read them."""

    async def made(*_: object) -> bool:
        return True

    def add(spawner: Any) -> None:
        spawner.user_options["team"] = "physics"

    monkeypatch.setattr(kubespawner.KubeSpawner, "_make_create_pod_request", made)
    spawner = hub_with(TWO_GPUS).spawner(profile_list=[CPU, GPU], pre_spawn_hook=add)
    spawner.user_options = {"profile": "gpu"}
    spawner.orm_spawner = row = orm.Spawner(name="lab", user_options={"profile": "cpu"})
    session = HubDatabase().session
    session.add(row)
    session.commit()
    await maybe_future(spawner.run_pre_spawn_hook())

    await spawner.load_user_options()
    await spawner._make_create_pod_request(await spawner.get_pod_manifest(), 3)

    assert spawner.user_options == {"profile": "gpu", "team": "physics"}
    session.rollback()
    session.expire_all()
    assert row.user_options == {"profile": "gpu"}
    session.close()
