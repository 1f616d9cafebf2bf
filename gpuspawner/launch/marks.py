"""When a page says again how long a start waits: often at first, so that nobody thinks it is stuck.

A page that opens late reads all that was told, so the last mark is never much older than the wait.
"""

_FIRST = (30, 60, 120, 180)
_THEN = 300
"""Each of these, in seconds."""


def last_mark(elapsed: float) -> int:
    """Return the last mark that has passed, in seconds; 0 before the first one."""
    regular = int(elapsed // _THEN) * _THEN
    return max((regular, *(it for it in _FIRST if it <= elapsed)))
