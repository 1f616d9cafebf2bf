"""The facts about one pod."""

import pytest
from msgspec.structs import replace

from gpuspawner.kube.autoscaling import Event
from gpuspawner.kube.startup import StartingContainer
from gpuspawner.troubles.evidence import container_of, own, server
from tests.unit.makers.starts import event, start


def test_events_of_an_older_pod_of_the_same_name_are_not_its_own():
    its, older, unnamed = (event("Pulling", "", uid=uid) for uid in ("5f1c", "0000", ""))

    assert own(start(), [its, older, unnamed]) == [its, unnamed]
    assert own(start(metadata={"uid": ""}), [its, older]) == [its, older]


def test_an_ephemeral_container_is_none_of_the_pods():
    about = Event().involved_object.__class__(field_path="spec.ephemeralContainers{debug}")

    assert container_of(Event(involved_object=about)) == ""


@pytest.mark.parametrize(
    ("names", "its"),
    [
        (["notebook", "crontab"], "notebook"),
        (["istio-proxy", "notebook"], "notebook"),
        (["lab", "crontab"], "lab"),
        ([], ""),
    ],
)
def test_the_server_is_the_container_that_kubespawner_names_so(names, its):
    """Istio puts its proxy first if it shall run before the others."""
    pod = start()
    made = [StartingContainer(name) for name in names]

    assert server(replace(pod, spec=replace(pod.spec, containers=made))) == its
