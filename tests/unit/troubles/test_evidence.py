"""The facts about one pod."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from gpuspawner.kube.autoscaling import Event
from gpuspawner.kube.startup import StartingContainer
from gpuspawner.troubles.evidence import (
    by_container,
    container_of,
    containers,
    earliest,
    latest,
    own,
    server,
)
from tests.unit.makers.starts import CLOUD_METADATA, NOTEBOOK, event, start

NOON, LATER = datetime(2026, 11, 21, 12, tzinfo=UTC), datetime(2026, 11, 21, 13, tzinfo=UTC)


def test_events_of_an_older_pod_of_the_same_name_are_not_its_own() -> None:
    its, older, unnamed = (event("Pulling", "", uid=uid) for uid in ("5f1c", "0000", ""))

    assert own(start(), [its, older, unnamed]) == [its, unnamed]
    assert own(start(metadata={"uid": ""}), [its, older]) == [its, older]


@pytest.mark.parametrize("name", [NOTEBOOK, CLOUD_METADATA, ""])
def test_an_event_names_its_container(name: str) -> None:
    assert container_of(event("Pulling", "", container=name)) == name


def test_an_ephemeral_container_is_none_of_the_pods() -> None:
    about = Event().involved_object.__class__(field_path="spec.ephemeralContainers{debug}")

    assert container_of(Event(involved_object=about)) == ""


def test_events_are_sorted_by_container() -> None:
    of_pod, of_notebook = event("Scheduled", ""), event("Pulling", "", container=NOTEBOOK)

    assert by_container([of_notebook, of_pod]) == {NOTEBOOK: [of_notebook], "": [of_pod]}


def test_init_containers_come_first_with_their_statuses() -> None:
    first, then = containers(start(init={"ready": True}, notebook={"restartCount": 2}))

    assert (first.name, first.position, first.is_init) == (CLOUD_METADATA, 0, True)
    assert (then.name, then.position, then.is_init) == (NOTEBOOK, 1, False)
    assert first.status.ready
    assert then.status.restart_count == 2


@pytest.mark.parametrize(
    ("names", "its"),
    [
        (["notebook", "crontab"], "notebook"),
        (["istio-proxy", "notebook"], "notebook"),
        (["lab", "crontab"], "lab"),
        ([], ""),
    ],
)
def test_the_server_is_the_container_that_kubespawner_names_so(names: list[str], its: str) -> None:
    """Istio puts its proxy first if it shall run before the others."""
    pod = start()
    made = [StartingContainer(name) for name in names]

    assert server(replace(pod, spec=replace(pod.spec, containers=made))) == its


def test_unknown_times_do_not_count() -> None:
    assert (earliest(LATER, None, NOON), latest(NOON, None, LATER)) == (NOON, LATER)
    assert (earliest(None), latest()) == (None, None)
