"""One start of one user, and how it may be cut."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any

import requests

from localcluster.client import unless_gone
from tests.race.cut_stage import CutStage
from tests.race.phases import Phase

_SILENT = 15.0
"""The progress stream of a hub that lives is never silent for longer than 8 s."""

READY = "Server ready at "
_DELETED = "Spawn failed: Your server was deleted while it started."


class Cut(Enum):
    """What happens in the middle of a phase."""

    HUB = "the hub is killed"
    API_SERVER = "the API server is restarted"
    WATCHES = "the hub's connections are cut"
    POD = "the pod is deleted"
    CANCELLED = "the start is cancelled"


TRUE = {
    Cut.HUB: "Your last server didn't start, because the hub was restarted meanwhile.",
    Cut.API_SERVER: READY,
    Cut.WATCHES: READY,
    Cut.POD: _DELETED,
    Cut.CANCELLED: "Spawn cancelled",
}
"""How the last sentence begins that the owner reads."""


@dataclass
class Start:
    """One start of one user, who has no other."""

    stage: CutStage
    phase: Phase
    cut: Cut
    number: int
    last: str = ""

    @property
    def user(self) -> str:
        return f"{self.phase.name}-{self.cut.name.lower().replace('_', '-')}-{self.number}"

    @property
    def pod(self) -> str:
        return f"jupyter-{self.user}"

    def follow(self) -> None:
        """Start the server, and remember the last sentence of its progress; "" if it was cut."""
        with suppress(requests.RequestException):
            answer = self.stage.hub.start(self.user, {"profile": self.phase.name})
            assert answer.status_code == 202, answer.text
            for event in self.stage.hub.follow(self.user, timeout=_SILENT):
                self.last = event.get("message", self.last)

    @property
    def is_held(self) -> bool:
        return self.pod in self.stage.gate.held

    def is_in_phase(self, pods: dict[str, Any]) -> bool:
        pod = pods.get(self.pod)
        # The hub tells of a pod as soon as it sees it.
        return self.is_held or (pod is not None and bool(self.last) and self.phase.is_reached(pod))

    def delete(self) -> None:
        with unless_gone():
            self.stage.cluster.api.delete(f"{self.stage.hub.pods.path}/{self.pod}", grace=0)

    def cancel(self) -> None:
        self.stage.hub.api("DELETE", f"/users/{self.user}/server")

    def read_next_page(self) -> None:
        """Remember what the owner reads next, whose progress was cut."""
        page = self.stage.hub.person(self.user).open(f"/hub/spawn/{self.user}")
        _, begins, rest = page.text.partition(TRUE[Cut.HUB])
        self.last = begins + rest if begins else f"{page.status} {page.text}"
