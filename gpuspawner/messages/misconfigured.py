"""What a person is told where only an administrator can help."""

from gpuspawner.messages.message import Message


def misconfigured() -> Message:
    """The hub's configuration contradicts itself; the log says where."""
    return Message.of(
        "This server cannot be started: the hub's configuration contradicts itself.",
        "Please tell an administrator, who finds the reason in the hub's log.",
    )
