"""Asks for the API server's version, which by default selects the scheduling rules."""

import asyncio
from collections.abc import Callable

import msgspec

from gpuspawner.cluster.client import Client, RequestError
from gpuspawner.cluster.watch import Backoff

_PATH = "/version"
# Answers that no retry changes: this client may not read the path, or the server has none.
_FINAL = (403, 404)


class _Version(msgspec.Struct, gc=False, rename="camel"):
    git_version: str = ""


async def server_version(
    client: Client, backoff: Backoff, lost: Callable[[RequestError], None]
) -> str:
    """Ask for the version until there is an answer.

    Args:
        client: Sends the requests.
        backoff: How soon to ask again.
        lost: Called with every failure; then the question is asked again.

    Returns:
        The version as the server writes it (``v1.36.2``); "" if it doesn't say.
    """
    failures = 0
    while True:
        try:
            async with client.get(_PATH, {}, backoff.page) as response:
                return _decoded(await response.read())
        except RequestError as error:
            if error.status in _FINAL:
                return ""
            failures += 1
            lost(error)
            await asyncio.sleep(max(error.retry_after, backoff.before_retry(failures)))


def _decoded(body: bytes) -> str:
    try:
        return msgspec.json.decode(body, type=_Version).git_version
    except msgspec.MsgspecError:
        return ""
