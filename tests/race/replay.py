"""From a recording to its moments: what the hub's view showed, and who was refused meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

Line = dict[str, Any]


@dataclass(frozen=True)
class Picture:
    """What a hub's view shows.

    Attributes:
        nodes: By name, what of each node decides: its GPUs, its taints, whether it is cordoned.
        bound: By name, where each pod runs and how many GPUs it holds.
    """

    nodes: dict[str, Line] = field(default_factory=dict)
    bound: dict[str, tuple[str, int]] = field(default_factory=dict)

    def after(self, line: Line) -> Picture:
        """What it shows after this line of the recording."""
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
    """A picture, and the refusals for want of room that were given while it was the newest."""

    picture: Picture
    refusals: list[Line]


def moments(recording: Iterable[Line], since: int = 0) -> Iterator[Moment]:
    """The moments in which somebody was refused.

    Args:
        recording: All lines from the hub's start on, so that the picture is whole.
        since: The first line whose refusals count.
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
