"""The events that Cluster Autoscaler writes about pods and about its ConfigMap."""

from localcluster.client import ApiError, Client, Object
from localcluster.events import event_about

_COMPONENT = "cluster-autoscaler"
#: The real one writes an event of a reason about a pod again only after this time.
_SILENCE = 300.0


class Events:
    """Writes events, each reason once for a pod in five minutes, whatever its message."""

    def __init__(self, api: Client) -> None:
        self._api = api
        self._written: dict[tuple[str, str], float] = {}

    def about_pod(self, pod: Object, reason: str, message: str, now: float) -> None:
        """Write an event about a pod, unless it has one of this reason from a short time ago."""
        key = (str(pod["metadata"]["uid"]), reason)
        if now - self._written.get(key, -_SILENCE) >= _SILENCE:
            self._written[key] = now
            self._write("Pod", pod["metadata"], reason, message, "Normal")

    def about_status(self, config_map: Object, reason: str, message: str, kind: str) -> None:
        """Write an event about the autoscaler's ConfigMap; ``kind`` is Normal or Warning."""
        self._write("ConfigMap", config_map["metadata"], reason, message, kind)

    def _write(self, of: str, metadata: Object, reason: str, message: str, kind: str) -> None:
        event = event_about(of, metadata, {"component": _COMPONENT}, reason, message, kind)
        try:
            self._api.create(f"/api/v1/namespaces/{metadata['namespace']}/events", event)
        except ApiError as error:
            # A namespace that is going away takes no new events.
            if error.status not in (403, 404):
                raise
