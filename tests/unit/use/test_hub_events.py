"""Facts become events of JupyterHub that fit their schema."""

import io
import json
import logging
from types import SimpleNamespace

import pytest
from jupyter_events import EventLogger

from gpuspawner.troubles.facts import Happened
from gpuspawner.use.hub_use import SCHEMA_ID, HubEvents
from tests.unit.use.facts import fact


@pytest.mark.parametrize("happened", list(Happened))
def test_each_fact_is_an_event_that_fits_the_schema(happened):
    written = io.StringIO()
    hub = SimpleNamespace(eventlog=EventLogger(handlers=[logging.StreamHandler(written)]))

    HubEvents(hub).emit(
        fact(happened, reason="busy", accelerator="a100", gpus=2, phases={"scheduled": 1.5})
    )

    event = json.loads(written.getvalue())
    assert event["__schema__"] == SCHEMA_ID
    assert (event["happened"], event["user"], event["server"]) == (happened.value, "ann", "")
    assert event["__timestamp__"].startswith("1970-01-12T13:46:40")


def test_without_handlers_or_a_logger_nothing_happens():
    HubEvents(SimpleNamespace()).emit(fact("granted"))
    HubEvents(SimpleNamespace(eventlog=EventLogger())).emit(fact("granted"))
