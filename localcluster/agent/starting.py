"""Why a container has not started, as its status and its events say it."""

from math import inf


class NotStartedError(Exception):
    """A container waits; the kubelet will try again.

    Attributes:
        reason: the reason in its status.
        message: the message in its status.
        said: what its event says.
        retry_in: the seconds until the kubelet tries again, if sooner than usual.
    """

    def __init__(self, reason: str, message: str, said: str = "", retry_in: float = inf) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message
        self.said = said or message
        self.retry_in = retry_in
