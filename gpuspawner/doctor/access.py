"""What the API server allows the commands' user, as it says itself."""

import asyncio
from collections.abc import Iterable, Mapping
from http import HTTPStatus

import msgspec
from msgspec.structs import asdict

from gpuspawner.cluster.client import Client, RequestError

_PATIENCE = 10.0


class Right(msgspec.Struct, frozen=True):
    """A right, as RBAC names it; without a namespace or a name it holds for all of them."""

    verb: str
    resource: str
    group: str = ""
    namespace: str = ""
    name: str = ""


class _User(msgspec.Struct):
    username: str = ""


class _Status(msgspec.Struct, rename="camel"):
    allowed: bool = False
    user_info: _User = msgspec.field(default_factory=_User)


class _Answer(msgspec.Struct):
    status: _Status = msgspec.field(default_factory=_Status)


async def missing(client: Client, rights: Iterable[Right]) -> set[Right]:
    """Return those that the API server doesn't grant.

    Raises:
        RequestError: It doesn't say.
    """
    try:
        # Not gather(), which leaves the other requests running when one has failed.
        async with asyncio.TaskGroup() as asking:
            asked = {right: asking.create_task(_allowed(client, right)) for right in rights}
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return {right for right, answer in asked.items() if not answer.result()}


async def user(client: Client) -> str:
    """Return the name of the user; "" if the API server doesn't say, as before 1.28."""
    try:
        answer = await _ask(client, "authentication.k8s.io/v1", "SelfSubjectReview", {})
    except RequestError:
        return ""
    return answer.status.user_info.username


async def _allowed(client: Client, right: Right) -> bool:
    spec = {"resourceAttributes": asdict(right)}
    version = "authorization.k8s.io/v1"
    return (await _ask(client, version, "SelfSubjectAccessReview", spec)).status.allowed


async def _ask(client: Client, version: str, kind: str, spec: Mapping[str, object]) -> _Answer:
    body = {"apiVersion": version, "kind": kind, "spec": spec}
    try:
        async with asyncio.timeout(_PATIENCE):
            status, answer = await client.post(f"/apis/{version}/{kind.lower()}s", {}, body)
    except TimeoutError as error:
        raise RequestError(f"no answer within {_PATIENCE:.0f} s") from error
    if status != HTTPStatus.CREATED:
        raise RequestError(f"HTTP {status} for a {kind}", status)
    try:
        return msgspec.json.decode(answer, type=_Answer)
    except msgspec.MsgspecError as error:
        raise RequestError(f"the {kind} isn't understood: {error}") from error
