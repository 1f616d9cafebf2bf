"""Emits the record as events of JupyterHub, for whatever handlers the administrator has set."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from gpuspawner.troubles.facts import Fact, Happened

SCHEMA_ID = "https://schema.jupyter.org/gpuspawner/server"
SCHEMA = {
    "$id": SCHEMA_ID,
    "version": "1",
    "title": "Servers of gpuspawner",
    "description": "What has happened to a server, from its start to its end.",
    "personal-data": True,
    "type": "object",
    "required": ["happened", "user", "server"],
    "properties": {
        "happened": {"enum": [it.value for it in Happened], "description": "What has happened."},
        "user": {"type": "string", "description": "The name of the owner."},
        "server": {"type": "string", "description": "The name of the server; empty for default."},
        "reason": {"type": "string", "description": "Why it was refused, or has ended."},
        "accelerator": {"type": "string", "description": "The key of the accelerator."},
        "gpus": {"type": "integer", "description": "How many of its resource."},
        "seconds": {"type": "number", "description": "How long it has waited, run or been idle."},
        "node": {"type": "string", "description": "Where it runs."},
        "phases": {
            "type": "object",
            "description": "The seconds of each phase of the start.",
            "additionalProperties": {"type": "number"},
        },
    },
}


class HubEvents:
    """The events of one hub."""

    def __init__(self, hub: Any) -> None:
        self._hub = hub
        self._is_registered = False

    def emit(self, fact: Fact) -> None:
        """Emit a fact; without handlers, the hub's logger drops it at once."""
        logger = getattr(self._hub, "eventlog", None)
        if logger is None:
            return
        if not self._is_registered:  # the hub makes its logger after it has read its configuration
            logger.register_event_schema(SCHEMA)
            self._is_registered = True
        data = msgspec.to_builtins(fact)
        at = datetime.fromtimestamp(data.pop("at"), UTC)
        logger.emit(schema_id=SCHEMA_ID, data={"server": "", **data}, timestamp_override=at)
