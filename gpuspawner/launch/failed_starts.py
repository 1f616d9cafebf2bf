"""What the next form says of each server's last start that failed, until that one begins."""

from collections import OrderedDict

Key = tuple[str, str]
"""The names of the owner and of the server."""

_MOST = 10_000
"""How many servers' failures a hub remembers."""


class FailedStarts:
    """The sentences that their owners read."""

    def __init__(self) -> None:
        self._texts: OrderedDict[Key, str] = OrderedDict()

    def note(self, key: Key, text: str) -> None:
        """Note that a start has failed."""
        self._texts[key] = text
        self._texts.move_to_end(key)
        if len(self._texts) > _MOST:
            self._texts.popitem(last=False)

    def forget(self, key: Key) -> None:
        """Forget the last failure: a new start begins."""
        self._texts.pop(key, None)

    def last(self, key: Key) -> str:
        """Return what was noted of the last start; "" if it didn't fail."""
        return self._texts.get(key, "")
