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


class Started(KubeStruct, frozen=True):
    """When the kubelet began to run a pod, in RFC 3339; "" before that."""

    start_time: str = ""


class ServerPodSpec(PodSpec, frozen=True):
    """The specification of a server's pod; with the seconds after which Kubernetes ends it."""

    active_deadline_seconds: int | None = None


class ServerPod(KubeStruct, frozen=True):
    """A pod that may be a user's server."""

    metadata: ServerMeta = ServerMeta()
    spec: ServerPodSpec = ServerPodSpec()
    status: Started = Started()

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
