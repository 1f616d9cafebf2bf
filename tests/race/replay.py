"""The moments of a recording: what the hub's view showed, and the refusals at that time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

Line = dict[str, Any]


@dataclass(frozen=True)
class Picture:
    """The nodes and pods that a hub's view shows.

    Attributes:
        nodes: By name, each node's GPUs, taints and whether it is cordoned.
        bound: By name, each pod's node and how many GPUs it holds.
    """

    nodes: dict[str, Line] = field(default_factory=dict)
    bound: dict[str, tuple[str, int]] = field(default_factory=dict)

    def after(self, line: Line) -> Picture:
        """Return the picture after this line of the recording."""
        match line:
            case {"what": "node", "name": name}:
                room = {key: line[key] for key in ("gpus", "taints", "unschedulable")}
                return replace(self, nodes={**self.nodes, name: room})
            case {"what": "node-gone", "name": name}:
                return replace(self, nodes=_without(self.nodes, name))
            case {"what": "bound", "name": name}:
                return replace(self, bound={**self.bound, name: (line["node"], line["gpus"])})
            case {"what": "gone", "name": name}:
                return replace(self, bound=_without(self.bound, name))
        return self


@dataclass(frozen=True)
class Moment:
    """A picture, and the refusals for lack of room while it was the newest."""

    picture: Picture
    refusals: list[Line]


def moments(recording: Iterable[Line], since: int = 0) -> Iterator[Moment]:
    """Yield the moments with refusals.

    Args:
        recording: All lines since the hub's start, so that the picture is complete.
        since: The first line from which to yield refusals.
    """
    picture, refusals = Picture(), []
    for number, line in enumerate(recording):
        if line["what"] == "refused" and line["reason"] != "try-again" and number >= since:
            refusals.append(line)
        after = picture.after(line)
        if after != picture:
            if refusals:
                yield Moment(picture, refusals)
            picture, refusals = after, []
    if refusals:
        yield Moment(picture, refusals)


def _without(facts: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in facts.items() if key != name}
