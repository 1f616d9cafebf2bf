"""How long a kubelet waits before it tries again, and how it writes durations."""

import os

#: In the agent's environment: the first back-off in seconds. Tests make it short.
FIRST_BACKOFF = "LOCALCLUSTER_FIRST_BACKOFF"

# pkg/kubelet/kubelet.go (v1.36.2): backOffPeriod, imageBackOffPeriod and the longest of both kinds.
_FIRST, _LONGEST = 10.0, 300.0


def first_backoff() -> float:
    """Return the first back-off in seconds, which is also the time between two looks at a pod."""
    return float(os.environ.get(FIRST_BACKOFF, _FIRST))


class Backoff:
    """Seconds to wait, doubled after each failure."""

    def __init__(self, longest: float = _LONGEST, first: float | None = None) -> None:
        self._longest = longest
        self._next = first_backoff() if first is None else first

    def next(self) -> float:
        """Return how long to wait after one more failure."""
        seconds = min(self._next, self._longest)
        self._next = 2 * seconds
        return seconds


def go_duration(seconds: float) -> str:
    """Write a duration as Go does, in whole milliseconds: ``1m20s``, ``2.5s``, ``300ms``."""
    milliseconds = round(seconds * 1000)
    if milliseconds < 1000:
        return f"{milliseconds}ms" if milliseconds else "0s"
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    text = f"{rest / 1000:.3f}".rstrip("0").rstrip(".") + "s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text
