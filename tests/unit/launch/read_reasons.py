"""What a message of kube-scheduler says, in the short form of tests."""

from __future__ import annotations

from gpuspawner.launch.scheduler_message import Kind, SchedulerMessage

Parsed = list[tuple[int | None, Kind, str]]


def reasons(message: SchedulerMessage | None) -> Parsed:
    assert message is not None
    return [(it.count, it.kind, it.subject) for it in message.reasons]
