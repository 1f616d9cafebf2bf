"""The facts about one pod: its own events, each once, and its containers in order."""

import re
from collections.abc import Iterable
from datetime import datetime

import msgspec

from gpuspawner.kube.autoscaling import Event
from gpuspawner.kube.servers import NOTEBOOK, Running
from gpuspawner.kube.startup import (
    StartingContainer,
    StartingContainerStatus,
    StartingPod,
    Terminated,
)

# Why a container waits, in its status.
PULL_FAILS = frozenset({
    "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "ImageInspectError",
    "InvalidImageName", "RegistryUnavailable", "SignatureValidationFailed",
})  # fmt: skip
NOT_YET = frozenset({"", "ContainerCreating", "PodInitializing"})
"""It is not its turn, or its image is being pulled."""

_CONTAINER = re.compile(r"spec\.(?:initContainers|containers)\{(.*)\}", re.DOTALL)


def own(pod: StartingPod, events: Iterable[Event]) -> list[Event]:
    """Return the events of this pod; an older pod of its name has had others."""
    uid = pod.metadata.uid
    return [it for it in events if not uid or it.involved_object.uid in ("", uid)]


def container_of(event: Event) -> str:
    """Return the name of the container that an event is about; "" if it is about the pod."""
    found = _CONTAINER.fullmatch(event.involved_object.field_path)
    return found[1] if found else ""


def by_container(events: Iterable[Event]) -> dict[str, list[Event]]:
    """Return the events of each container, by its name; those of the pod are at ""."""
    found: dict[str, list[Event]] = {}
    for event in events:
        found.setdefault(container_of(event), []).append(event)
    return found


class SeenContainer(msgspec.Struct, frozen=True):
    """A container or an init container, and how far it is.

    Attributes:
        position: In the order in which the kubelet starts them.
    """

    position: int
    spec: StartingContainer
    status: StartingContainerStatus | None
    is_init: bool

    @property
    def name(self) -> str:
        """Its name."""
        return self.spec.name

    @property
    def runs(self) -> list[Running | Terminated]:
        """Its present run and its last one, as far as its status has them."""
        status = self.status
        states = [it for it in (status.state, status.last_state) if it] if status else []
        return [it for state in states for it in (state.running, state.terminated) if it]

    @property
    def is_sidecar(self) -> bool:
        """Whether it is an init container that keeps running."""
        return self.is_init and self.spec.restart_policy == "Always"


def containers(pod: StartingPod) -> list[SeenContainer]:
    """Return the init containers, and then the others."""
    status = pod.status
    first = {it.name: it for it in status.init_container_statuses or ()}
    then = {it.name: it for it in status.container_statuses or ()}
    listed = [(it, first, True) for it in pod.spec.init_containers or ()]
    listed += [(it, then, False) for it in pod.spec.containers or ()]
    return [
        SeenContainer(number, spec, statuses.get(spec.name), is_init)
        for number, (spec, statuses, is_init) in enumerate(listed)
    ]


def server(pod: StartingPod) -> str:
    """Return the name of the server's container: the first, if a hook has renamed KubeSpawner's.

    Admission may put another one in front, as Istio's does.
    """
    names = [it.name for it in pod.spec.containers or ()]
    return NOTEBOOK if NOTEBOOK in names else next(iter(names), "")


def earliest(*times: datetime | None) -> datetime | None:
    """Return the earliest of the known times."""
    return min((it for it in times if it is not None), default=None)


def latest(*times: datetime | None) -> datetime | None:
    """Return the latest of the known times."""
    return max((it for it in times if it is not None), default=None)
