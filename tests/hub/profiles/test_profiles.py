"""An existing hub's ``profile_list`` works as before, but no pod waits in vain for a GPU."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest

from localcluster import Fleet, NodeGroup
from tests.fixtures.cluster import AddNodes
from tests.hub.conftest import StartGPUHub
from tests.hub.kept import LendHub
from tests.hub.people import Person
from tests.hub.running import RunningHub
from tests.unit.makers.profile_lists import CPU, GPU
from tests.waiting import wait_for

NOT_HERE: dict[str, Any] = {
    "display_name": "V100",
    "slug": "v100",
    "kubespawner_override": {
        "extra_resource_guarantees": {"nvidia.com/gpu": "1"},
        "extra_resource_limits": {"nvidia.com/gpu": "1"},
        "node_selector": {"gpu": "v100"},
    },
}
PROFILES = f"""
c.JupyterHub.allow_named_servers = True
c.KubeSpawner.profile_list = {[CPU, GPU, NOT_HERE]!r}
"""
TWO = {"profile": "gpu", "profile-option-gpu--gpus": "two"}
WRITTEN_IN = "profile-option-gpu--image--unlisted-choice"


@pytest.fixture
def hub(kept_hub: LendHub, add_nodes: AddNodes) -> RunningHub:
    """A hub with two GPUs."""
    add_nodes(nodes(gpus=2))
    return kept_hub(PROFILES)


def nodes(gpus: int) -> Fleet:
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    return Fleet((NodeGroup("a100", 1, amounts, labels={"gpu": "a100"}),))


def test_the_form_shows_the_availability_of_gpu_profiles(hub: RunningHub) -> None:
    page = hub.person("who-chose-nothing-yet").open("/hub/spawn")

    assert "GPU server Free 2 of 2 free" in page.text
    assert "One (Free: 2 of 2 free)" in page.text
    assert "Two (Free: 2 of 2 free)" in page.text
    assert "V100 Not available no machine here can provide it" in page.text
    assert "CPU only For courses GPU server" in page.text
    assert "Base Torch" in page.text
    assert page.chosen["profile"] == "cpu-only"


@pytest.mark.each_hub
def test_a_profile_that_does_not_fit_is_refused_on_the_form_with_the_choices_kept(
    hub: RunningHub,
) -> None:
    hub.start_until_ready("alice", {"profile": "gpu"})
    bob = hub.person("bob")

    for server in ("", "second"):
        page = bob.submit({**TWO, WRITTEN_IN: 'quay.io/"</script>:1'}, server=server)

        assert page.status == 409
        assert "“GPU server” with “Two” can't start right now." in page.text
        assert "You asked for 2 × GPU, but only 1 is free right now." in page.text
        assert (
            "You can start one of these instead: “GPU server” with “One”; “CPU only”." in page.text
        )
        assert "Two (In use: 1 of 2 free)" in page.text
        assert page.chosen["profile"] == "gpu"
        assert page.chosen["profile-option-gpu--gpus"] == "two"
        assert json.dumps('quay.io/"</script>:1').replace("<", r"\u003c")[:-10] in page.html
    assert hub.pods.names() == {"jupyter-alice"}


def test_the_button_of_an_alternative_starts_it(hub: RunningHub) -> None:
    hub.start_until_ready("alice", {"profile": "gpu"})
    bob = hub.person("bob")
    refused = bob.submit({**TWO, "own": "kept"})
    values = re.findall(r'name="gpuspawner-instead" value="([^"]+)"', refused.html)

    assert "Start “GPU server” with “One” Start “CPU only”" in refused.text
    page = bob.submit({**TWO, "gpuspawner-instead": html.unescape(values[0])})

    assert page.is_of_a_start
    chosen = hub.until_ready("bob")["user_options"]
    assert (chosen["profile"], chosen["gpus"]) == ("gpu", "one")


def test_an_open_form_s_states_follow_the_cluster(hub: RunningHub) -> None:
    bob = hub.person("bob")
    assert states(bob)["gpu"] == ("free", "2 of 2 free")
    hub.start_until_ready("alice", {"profile": "gpu"})
    wait_for(lambda: states(bob)["gpu"] == ("free", "1 of 2 free"))
    assert states(bob)["cpu-only"] == (None, "")
    assert states(bob)["v100"] == ("absent", "no machine here can provide it")


def states(person: Person) -> dict[str, tuple[str | None, str]]:
    """Ask as the page's script does."""
    [address] = re.findall(r'data-states="([^"]+)"', person.open("/hub/spawn").html)
    headers = {"Sec-Fetch-Mode": "cors", "X-XSRFToken": person.xsrf}
    answer = person.session.get(urljoin(person.hub.url, address), headers=headers)
    assert answer.status_code == 200, answer.text
    return {it["profile"]: (it["state"], it["detail"]) for it in answer.json()["profiles"]}


@pytest.mark.each_hub
def test_rest_and_query_refuse_a_profile_alike(hub: RunningHub) -> None:
    hub.start_until_ready("alice", {"profile": "gpu", "gpus": "two"})

    answer = hub.start("bob", {"profile": "gpu"})
    page = hub.person("bob").open("/hub/spawn/bob?opt-profile=gpu")

    assert answer.status_code == page.status == 409
    told = "“GPU server” with “One” can't start right now. No GPU is free right now: all 2 are in"
    assert told in answer.json()["message"]
    assert told in page.text
    assert page.chosen["profile"] == "gpu"
    assert hub.pods.names() == {"jupyter-alice"}


def test_a_profile_that_fits_starts_as_kubespawner_starts_it(hub: RunningHub) -> None:
    form = {"profile": "gpu", "profile-option-gpu--gpus": "two", WRITTEN_IN: "quay.io/a:1"}

    page = hub.person("alice").submit(form)

    assert page.is_of_a_start
    container = hub.pods.bound("alice")["spec"]["containers"][0]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "2"}
    assert container["image"] == "quay.io/a:1"
    assert hub.until_ready("alice")["user_options"] == {
        "profile": "gpu",
        "gpus": "two",
        "image--unlisted-choice": "quay.io/a:1",
    }


INVALID: list[tuple[Any, str]] = [
    ({"profile": "gqu"}, "profile: 'gqu' isn't offered. Did you mean 'gpu'?"),
    ({"profile": "gpu", "gpus": {"one": 1}}, "gpus: an object isn't offered"),
    ({"profile": "gpu", "image--unlisted-choice": 7}, "7 isn't text"),
]


def test_invalid_options_are_answered_with_the_valid_choices(
    hub: RunningHub, subtests: pytest.Subtests
) -> None:
    for options, told in INVALID:
        with subtests.test(told):
            answer = hub.start("alice", options)

            assert answer.status_code == 400
            assert told in answer.json()["message"]
            assert not hub.server("alice")


def test_an_invalid_form_is_shown_again_with_the_valid_choices(hub: RunningHub) -> None:
    person = hub.person("who-was-granted-nothing-yet")

    unknown = person.submit({"profile": "gone", "profile-option-gone--gpus": "one"})
    wrong = person.submit({**TWO, WRITTEN_IN: "docker.io/<b>"})

    assert unknown.status == wrong.status == 400
    assert "profile: 'gone' isn't offered. Choose cpu-only, gpu or v100." in unknown.text
    assert unknown.chosen["profile"] == "cpu-only"
    assert "'docker.io/<b>' isn't allowed. It must come from quay.io." in wrong.text
    assert wrong.chosen["profile-option-gpu--gpus"] == "two"


FUNCTIONS = f"""
import asyncio, pathlib
calls = pathlib.Path("calls")
async def profiles_of(spawner):
    await asyncio.sleep(0)
    calls.open("a").write(f"{{spawner.user.name}}\\n")
    if pathlib.Path("term-is-over").exists():
        return [{CPU!r}]
    if spawner.user.name == "odd":
        return [{{"kubespawner_override": {{}}}}]
    if spawner.user.name == "broken":
        raise LookupError("the directory of courses")
    return {[CPU, GPU]!r} if spawner.user.name == "alice" else [{CPU!r}, {{
        "display_name": "Mine", "slug": "mine", "kubespawner_override": {{
            "extra_resource_limits": lambda spawner: {{"nvidia.com/gpu": "2"}},
            "node_selector": {{"gpu": "a100"}},
            "environment": lambda spawner: {{"OWNER": spawner.user.name}}}}}}]
c.KubeSpawner.profile_list = profiles_of
"""


def test_a_profile_function_is_called_once_a_page(
    start_gpu_hub: StartGPUHub, add_nodes: AddNodes
) -> None:
    add_nodes(nodes(gpus=2))
    with start_gpu_hub(FUNCTIONS) as hub:
        alice, bob = hub.person("alice"), hub.person("bob")

        assert "GPU server Free 2 of 2 free" in alice.open("/hub/spawn").text
        assert "Mine Free 2 of 2 free" in bob.open("/hub/spawn").text
        assert _calls(hub) == ["alice", "bob"]

        assert alice.submit({"profile": "gpu"}).is_of_a_start
        hub.until_ready("alice")
        # Each gate calls it once, and KubeSpawner once at the start.
        assert _calls(hub) == ["alice", "bob", *["alice"] * 3]
        refused = bob.submit({"profile": "mine"})
        assert refused.status == 409
        assert "“Mine” can't start right now." in refused.text
        assert hub.start("bob", {"profile": "gpu"}).status_code == 400

        for name in ("odd", "broken"):
            assert hub.person(name).open("/hub/spawn").status == 409
            assert hub.start(name).status_code == 409
        assert "LookupError" in hub.log
        assert "KubeSpawner.profile_list: KeyError('display_name')" in hub.log
        assert "HTTP 500" not in hub.log


def test_the_form_and_rest_report_options_no_longer_on_offer(
    start_gpu_hub: StartGPUHub, add_nodes: AddNodes
) -> None:
    add_nodes(nodes(gpus=2))
    with start_gpu_hub(FUNCTIONS) as hub:
        hub.start_until_ready("alice", {"profile": "gpu"})
        hub.stop("alice")
        alice = hub.person("alice")
        assert "no longer offered" not in alice.open("/hub/spawn").text
        (_folder(hub) / "term-is-over").touch()

        page = alice.open("/hub/spawn")
        answer = hub.start("alice")

        assert page.status == 200
        assert "Some of your last choices are no longer offered." in page.text
        assert page.chosen["profile"] == "cpu-only"
        assert answer.status_code == 400
        assert "'gpu' isn't offered. Choose cpu-only." in answer.json()["message"]
        hub.start_until_ready("alice", {"profile": "cpu-only"})


def _calls(hub: RunningHub) -> list[str]:
    return (_folder(hub) / "calls").read_text().split()


def _folder(hub: RunningHub) -> Path:
    return Path(f"/proc/{hub.process.pid}/cwd")
