"""Puts people back in line whose wait was cut short through no fault of theirs."""

import asyncio
import logging
import time
from contextlib import suppress
from functools import partial
from http import HTTPStatus

from gpuspawner.cluster.health import Forbidden, Live
from gpuspawner.cluster.view import ClusterView
from gpuspawner.compat import waiting
from gpuspawner.launch.server_state import PLACE, place_of, without_place
from gpuspawner.line.stored_places import PATIENCE_SECONDS, Server, StoredPlaces
from gpuspawner.reservations.place_in_line import OPTION

log = logging.getLogger(__name__)

_AGAIN_SECONDS = 1.0
_STARTING_SECONDS = 0.25
"""How often a hub that is about to start is asked whether it answers."""
_LOOK_SECONDS = 0.05
_NEXT_SECONDS = 5.0
_SLOWLY_SECONDS = 10.0
"""How often, after the first minute, a start is made that the hub can't take yet."""
_LONGEST_SECONDS = 3600.0
"""For how long: a hub at its limits, or out of contact, says nothing about the server."""


async def resume_all(places: StoredPlaces, view: ClusterView) -> None:
    """Start the servers again that were in line when the hub ended. Never raises."""
    try:
        while not await waiting.answers():  # noqa: ASYNC110, nothing tells when the hub has started
            await asyncio.sleep(_STARTING_SECONDS)
        await waiting.surviving(partial(_keep, places))
        await _until_sure(view)
        places.begin()
        async with asyncio.TaskGroup() as group:
            for server in places.servers():
                await _until_back(places, server, group.create_task(resume(places, server)))
    except Exception:
        log.exception("Can't start those again who were in line when the hub ended")


async def _keep(places: StoredPlaces) -> None:
    """Keep the places that the hub has stored."""
    stored = {server: place_of(state) for server, state in waiting.stored_states(PLACE)}
    places.keep_stored({it: p for it, p in stored.items() if p and not waiting.is_active(it)})


async def _until_sure(view: ClusterView) -> None:
    """Wait while the hub doesn't see the cluster: a start would go on unchecked after a while."""
    while not isinstance(view.health(), Live | Forbidden):
        await view.changed(_AGAIN_SECONDS)


async def _until_back(places: StoredPlaces, server: Server, resumed: asyncio.Task[None]) -> None:
    """Wait until a server has joined the line, or for some seconds.

    One after the other, the first are served first, and the hub's loop is free in between.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(_NEXT_SECONDS):
            # It joins inside the hub's own handler, which tells nobody.
            while not resumed.done() and places.find(server):  # noqa: ASYNC110
                await asyncio.sleep(_LOOK_SECONDS)


async def resume(places: StoredPlaces, server: Server) -> None:
    """Start a server again as its owner would, if a place is kept for it. Never raises.

    It takes the place itself when it joins the line. If it can't, the database forgets the place.
    """
    try:
        answer = f"HTTP {await waiting.surviving(partial(_last_answer, places, server))}"
    except Exception as error:  # noqa: BLE001, the others' places don't depend on it
        answer = repr(error)
    try:
        if places.find(server) and not waiting.is_active(server):
            places.pop(server)
            log.warning("%s can't wait in line any more: %s", waiting.log_name(server), answer)
            await waiting.change_state(server, without_place)
    except Exception:
        log.exception("The hub's database may still have the place of a server")


async def _last_answer(places: StoredPlaces, server: Server) -> int:
    """Start a server until it has its place, for an hour at most; return the last HTTP status.

    The hour doesn't pass while the hub checks the server, stops it, or starts it for its owner.
    Others don't wait that long (`StoredPlaces.are_awaited`).
    """
    status, tried = 0, 0.0
    while (place := places.find(server)) and tried < _LONGEST_SECONDS:
        if waiting.is_active(server):
            await asyncio.sleep(_LOOK_SECONDS)
            continue
        if not waiting.is_stored(server):
            return HTTPStatus.NOT_FOUND
        begun = time.monotonic()
        status = await waiting.start(server, {**place.options, OPTION: place.wish.value})
        if status not in waiting.NOT_YET and not waiting.is_active(server):
            break
        await asyncio.sleep(_AGAIN_SECONDS if tried < PATIENCE_SECONDS else _SLOWLY_SECONDS)
        tried += time.monotonic() - begun
    return status
