"""Pods of users' servers: what tells whose a server is, and what it may have."""

from datetime import datetime, timedelta

import msgspec

from .meta import BareMeta, KubeStruct, moment
from .pods import PodSpec

GRANT = "gpuspawner/grant"
"""The annotation of a pod with the policies by which its owner got it."""
USER = "hub.jupyter.org/username"
"""KubeSpawner's annotation with the owner's name, and its label with a form of it."""
SERVER = "hub.jupyter.org/servername"
"""The same for the name of the server."""
NOTEBOOK = "notebook"
"""The name that KubeSpawner gives the server's container."""

KARPENTER = "karpenter.sh/do-not-disrupt"
UNDISRUPTED = {KARPENTER: "true", "cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
"""Annotations that keep autoscalers from ending a pod to save its node."""


class ServerAnnotations(KubeStruct, frozen=True):
    """The annotations that KubeSpawner and gpuspawner write; anyone may have edited them."""

    user: str = msgspec.field(default="", name=USER)
    server: str = msgspec.field(default="", name=SERVER)
    grant: str = msgspec.field(default="", name=GRANT)


class ServerMeta(BareMeta, frozen=True):
    """The metadata of a server's pod."""

    annotations: ServerAnnotations | None = None


class Running(KubeStruct, frozen=True):
    """A container that runs."""

    started_at: str | None = None


class RunningState(KubeStruct, frozen=True):
    """Since when a container runs, if it does."""

    running: Running | None = None


class RunningStatus(KubeStruct, frozen=True):
    """The status of a container."""

    name: str = ""
    state: RunningState | None = None


class ServerStatus(KubeStruct, frozen=True):
    """The status of a server's pod.

    Attributes:
        start_time: When its kubelet took it, in RFC 3339; "" before that.
    """

    start_time: str = ""
    container_statuses: list[RunningStatus] | None = None


class ServerPodSpec(PodSpec, frozen=True):
    """The specification of a server's pod; with the seconds after which Kubernetes ends it."""

    active_deadline_seconds: int | None = None


class ServerPod(KubeStruct, frozen=True):
    """A pod that may be a user's server."""

    metadata: ServerMeta = ServerMeta()
    spec: ServerPodSpec = ServerPodSpec()
    status: ServerStatus = ServerStatus()

    @property
    def runs_since(self) -> datetime | None:
        """When the server's container began to run; None if it doesn't.

        That is after the pull of its image, which may take longer than a server may be idle. If a
        hook has renamed the container, the last counts. A sidecar may start again and again.
        """
        each = self.status.container_statuses or ()
        states = (it.state for it in [it for it in each if it.name == NOTEBOOK] or each)
        began = (moment(it.running.started_at) for it in states if it and it.running)
        return max((it for it in began if it), default=None)

    @property
    def ends_at(self) -> datetime | None:
        """When Kubernetes ends the pod; None if it doesn't, or hasn't started the pod yet."""
        began, seconds = moment(self.status.start_time), self.spec.active_deadline_seconds
        if began is None or seconds is None:
            return None
        try:
            return began + timedelta(seconds=seconds)
        except OverflowError:
            return None
