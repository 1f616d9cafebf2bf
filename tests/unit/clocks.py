"""A clock that a test sets, for what takes its clock as an argument."""


class Clock:
    """Returns the seconds in `now`."""

    now = 0.0

    def __call__(self) -> float:
        return self.now
