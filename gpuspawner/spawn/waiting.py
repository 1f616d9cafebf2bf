"""What the progress page says while a start waits for a node.

The page shows only the last message, and keeps the others in a closed log. So after each event
about the wait, we say again in plain words what happens.
"""

from collections.abc import AsyncIterable, AsyncIterator, Callable
from typing import Any

from gpuspawner import messages
from gpuspawner.kube.autoscaling import Event
from gpuspawner.kube.objects import UNDECODABLE, strict_convert
from gpuspawner.messages import Message
from gpuspawner.preflight.decision import Start, Wait
from gpuspawner.scaling.answers import Coming, answer


def shown(message: Message, progress: int) -> dict[str, Any]:
    """Return a message as the hub's progress stream has it."""
    return {"progress": progress, "message": message.text, "html_message": message.html}


async def retold(
    events: AsyncIterable[dict[str, Any]], decided: Callable[[], Start | Wait | None]
) -> AsyncIterator[dict[str, Any]]:
    """Yield KubeSpawner's progress, and after each event about a wait what it means.

    *decided* returns the last decision, which the last gate may change while the page is open.
    """
    is_coming = False
    async for step in events:
        yield step
        event, decision = _event(step.get("raw_event")), decided()
        if event is None or not isinstance(decision, Wait):
            continue
        says_so = isinstance(answer(event), Coming)
        is_coming = is_coming or says_so
        if says_so or event.reason == "FailedScheduling":
            coming = (messages.node_comes(decision.scale_up),)
            for message in coming if is_coming else messages.progress(decision):
                yield shown(message, step["progress"])


def _event(raw: object) -> Event | None:
    """Read the event behind a step, if there is one; the page shows the step anyway."""
    try:
        return None if raw is None else strict_convert(raw, Event)
    except UNDECODABLE:
        return None
