"""Events about pods: each reason once in five minutes, as the real one limits them."""

from __future__ import annotations

from typing import cast

from localcluster.client import Client, Object
from localcluster.clusterautoscaler.events import Events

POD: Object = {"metadata": {"name": "p", "namespace": "n", "uid": "1"}}


class Written:
    """Takes what a client would create."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def create(self, _path: str, event: Object) -> None:
        self.told.append((event["reason"], event["message"]))


def test_a_reason_is_written_again_only_after_five_minutes_even_with_other_words() -> None:
    written = Written()
    events = Events(cast("Client", written))

    events.about_pod(POD, "NotTriggerScaleUp", "full", now=1000.0)
    events.about_pod(POD, "NotTriggerScaleUp", "in backoff", now=1299.0)
    events.about_pod(POD, "TriggeredScaleUp", "growing", now=1299.0)
    events.about_pod(POD, "NotTriggerScaleUp", "in backoff", now=1300.0)

    assert written.told == [
        ("NotTriggerScaleUp", "full"),
        ("TriggeredScaleUp", "growing"),
        ("NotTriggerScaleUp", "in backoff"),
    ]


def test_another_pod_of_the_same_name_is_another_pod() -> None:
    written = Written()
    events = Events(cast("Client", written))
    again: Object = {"metadata": {**POD["metadata"], "uid": "2"}}

    events.about_pod(POD, "NotTriggerScaleUp", "full", now=1000.0)
    events.about_pod(again, "NotTriggerScaleUp", "full", now=1001.0)

    assert len(written.told) == 2
