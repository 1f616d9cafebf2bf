"""The how-to about policies, with its own lines in a real hub."""

from __future__ import annotations

import json

from tests.fixtures.cluster import AddNodes
from tests.hub.conftest import StartGPUHub
from tests.hub.policies.test_policies import NODES, OFFERS
from tests.hub.running import RunningHub
from tests.hub.web.test_documented_examples import examples

COURSE, GROUPS, NAMED = examples("how-to/policies.md", "python")
STUDENTS = [f"student-{number}" for number in range(1, 31)]


def people(**groups: list[str]) -> str:
    loaded = {name.replace("_", "-"): {"users": users} for name, users in groups.items()}
    return f"c.JupyterHub.load_groups = {json.dumps(loaded)}\n"


def start(hub: RunningHub, user: str, gpus: int, server: str = "") -> tuple[int, str]:
    hub.api("POST", f"/users/{user}")
    path = f"/users/{user}/servers/{server}" if server else f"/users/{user}/server"
    answer = hub.api("POST", path, {"accelerator": "t4", "gpus": gpus})
    told = answer.json()["message"] if answer.status_code >= 400 else ""
    return answer.status_code, told


def test_a_course_of_thirty_shares_eight_gpus_and_a_teacher_has_four(
    start_gpu_hub: StartGPUHub, add_nodes: AddNodes
) -> None:
    add_nodes(NODES)
    groups = people(ml_2026=[*STUDENTS, "teacher"], ml_2026_teachers=["teacher"])
    with start_gpu_hub(OFFERS + groups + COURSE) as hub:
        statuses = [start(hub, student, 1)[0] for student in STUDENTS]
        assert statuses == [201] * 8 + [409] * 22

        assert start(hub, "teacher", 4)[0] == 201
        _, told = start(hub, "student-30", 1)
        assert told.startswith(
            "The course has eight GPUs together, and each of you can have one. "
            "The group ml-2026 can have 8 GPUs at a time, and uses 8"
        )
        status, told = start(hub, "student-1", 1, "second")
        assert status == 409
        assert "You can have 1 GPU at a time, and you're using 1: your default server." in told
        [deadline] = {
            pod["spec"].get("activeDeadlineSeconds")
            for pod in hub.pods.all()
            if "student" in pod["metadata"]["name"]
        }
        assert deadline == 4 * 3600


def test_experiments_have_named_servers_of_their_own(
    start_gpu_hub: StartGPUHub, add_nodes: AddNodes
) -> None:
    add_nodes(NODES)
    with start_gpu_hub(OFFERS + NAMED) as hub:
        assert start(hub, "ann", 2)[0] == 403
        assert start(hub, "ann", 1)[0] == 201
        assert start(hub, "ann", 2, "exp-a")[0] == 201
        assert start(hub, "ann", 1, "exp-b")[0] == 409
        status, told = start(hub, "ann", 1, "other")
        assert status == 403
        assert told.startswith("Among named servers, only those named exp-… can have a GPU.")


def test_guests_of_three_groups_get_no_gpu(start_gpu_hub: StartGPUHub, add_nodes: AddNodes) -> None:
    add_nodes(NODES)
    offers = OFFERS.replace('"t4": {', '"a100": {"node_selector": {"gpu": "a100"}}, "t4": {')
    with start_gpu_hub(offers + people(vision=["vera"], language=["lee"]) + GROUPS) as hub:
        assert start(hub, "vera", 4)[0] == 201
        status, told = start(hub, "guest", 1)
        assert status == 403
        assert told.startswith("GPUs are for members of a research group.")
        guest = hub.person("guest")
        assert "Tesla T4" not in guest.open("/hub/spawn").text
