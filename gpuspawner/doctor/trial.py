"""Starts one server for a user by the hub's REST API, says what was seen, and removes it again.

Its name is new, so no server that somebody has is touched, and neither is a claim that others use.
"""

import asyncio
import json
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Generic, TypeVar
from urllib.parse import quote

import msgspec
from traitlets.config import Config

from gpuspawner.cluster.client import RequestError
from gpuspawner.compat.kubespawner import labels_of_claim, labels_of_pod
from gpuspawner.compat.people import slugs_of
from gpuspawner.doctor.hub import ANY_ID, Hub, NoSpawnerError, watching
from gpuspawner.doctor.hub_api import HubApi, HubApiError, NoHubError
from gpuspawner.kube.autoscaling import Event
from gpuspawner.kube.objects import UNDECODABLE
from gpuspawner.kube.servers import SERVER, USER, ServerAnnotations
from gpuspawner.kube.startup import StartingMeta, StartingPod
from gpuspawner.messages.administrators import Finding, error, fine, warning
from gpuspawner.policies.owner import Owner
from gpuspawner.troubles.images import Pulled
from gpuspawner.troubles.steps import stages

T = TypeVar("T")
_ANSWER_SECONDS = 10.0
_LOOK_SECONDS = 0.5
_GONE_SECONDS = 120.0
"""How long a server may take to end."""
_CLAIMS = "persistentvolumeclaims"
_OF_SCOPES = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND})


class _Meta(StartingMeta, frozen=True):
    annotations: ServerAnnotations = ServerAnnotations()


class _Object(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()


class _Started(StartingPod, frozen=True):
    metadata: _Meta = _Meta()


_Pod = TypeVar("_Pod", _Object, _Started)


class _List(msgspec.Struct, Generic[T], frozen=True):
    items: Sequence[T] | None = None


async def try_start(
    config: Config,
    api: HubApi,
    user: str,
    options: Mapping[str, object],
    tell: Callable[[str], None],
) -> list[Finding]:
    """Start a server, and tell how far it is; then remove it, also if this is interrupted.

    Raises:
        ConfigurationError, OfferError: The configuration would stop the hub.
    """
    try:
        name = await _free_name(api, user)
    except HubApiError as refused:
        return [_not_started(user, refused)]
    try:
        async with watching(config, Owner(user, server=name)) as hub:
            return await Trial(hub, api, tell).run(options)
    except NoSpawnerError as failed:
        text = f"{user}'s server wasn't started: no spawner can be made for it: {failed}."
        advice = "The class has to make one for a server of any name, whose user may have no group."
        return [error("start", text, advice)]


async def _free_name(api: HubApi, user: str) -> str:
    """Return the name of a new server; "", the default server's, if there are no named ones.

    Raises:
        HubApiError: The hub doesn't say.
    """
    name = f"doctor-{secrets.token_hex(4)}"
    await api.ask("GET", _path(user))  # of an unknown user, the answer below would mislead
    try:
        # The answer to this alone says whether there can be named servers; none has this name.
        await api.ask("DELETE", _path(user, name))
    except HubApiError as refused:
        if refused.status == HTTPStatus.NOT_FOUND:
            return name
        if refused.status != HTTPStatus.BAD_REQUEST:
            raise
    return ""


class Trial:
    """One server that nobody has yet.

    Args:
        hub: Its owner is that of the server.
        api: The hub's REST API.
        tell: Called with each thing that happens.
    """

    def __init__(self, hub: Hub, api: HubApi, tell: Callable[[str], None]) -> None:
        self._api, self._tell, self._client = api, tell, hub.runtime.client
        self._user, self._name = hub.owner.name, hub.owner.server
        self._path = _path(self._user, self._name)
        # By labels: only the hub knows names that have the id of the user in them, and in which
        # namespace it has stored that the user is.
        self._namespace = "" if hub.spawner.enable_user_namespaces else hub.spawner.namespace
        self._place = f"/api/v1/namespaces/{self._namespace}" if self._namespace else "/api/v1"
        hub.spawner.user.id = ANY_ID
        labels = labels_of_pod(hub.spawner)
        self._of_owner = _selector(labels)
        self._of_server = f"{SERVER}={labels[SERVER]}"  # of a new name, that is enough
        if not self._name and self._of_owner:
            self._of_server = f"{self._of_owner},{self._of_server}"
        self._of_claim = _selector(labels_of_claim(hub.spawner))
        self._others: frozenset[str] = frozenset()
        self._is_answered = False

    async def run(self, options: Mapping[str, object]) -> list[Finding]:
        """Start it, look at it, and remove it."""
        self._others = await self._seen()
        try:
            await self._check_unused()
        except HubApiError as refused:
            return [_not_started(self._user, refused)]
        is_ours = True
        what = f"server {self._name}" if self._name else "default server"
        self._tell(f"Starting the {what} of {self._user} with {json.dumps(options)}.")
        try:
            began = time.monotonic()
            await self._start(options)
            found = await self._watched(began)
        except HubApiError as refused:
            is_ours = bool(self._name)  # a refused default server may be running by now
            found = _not_started(self._user, refused)
        finally:
            left = await self._removed() if is_ours else []
        return [found, *left]

    async def _seen(self) -> frozenset[str]:
        """Return the uids of pods that already have the labels: another hub's, or an older one."""
        if self._name:
            return frozenset()
        try:
            return frozenset(it.metadata.uid for it in await self._pods(_Object))
        except (RequestError, *UNDECODABLE):  # its removal will say so
            return frozenset()

    async def _check_unused(self) -> None:
        """Check that the user's default server isn't in use, at the last moment before its start.

        To a POST, the hub says yes to a server that is already starting, and then the doctor would
        stop the user's own.

        Raises:
            HubApiError: It is in use, or the hub doesn't say.
        """
        if self._name:
            return
        known = await self._api.ask("GET", _path(self._user))
        if "" in known.get("servers", {}):
            text = (
                "the hub has no named servers, and the default server is in use; stop that one "
                "first, or name another user"
            )
            raise HubApiError(HTTPStatus.CONFLICT, text)

    async def _start(self, options: Mapping[str, object]) -> None:
        """Start it, and note whether the hub has said if it makes the server.

        Raises:
            HubApiError: It doesn't, or nobody knows: other statuses may be those of a proxy.
        """
        try:
            await self._api.ask("POST", self._path, options)
        except HubApiError as refused:
            self._is_answered = refused.status < HTTPStatus.INTERNAL_SERVER_ERROR
            raise
        self._is_answered = True

    async def _watched(self, began: float) -> Finding:
        try:
            last = await self._api.follow(f"{self._path}/progress", self._tell)
        except HubApiError as lost:
            return _not_started(self._user, lost)
        if not last.get("ready"):
            return _not_started(self._user, HubApiError(0, last.get("message", "")))
        ready = f"{self._user}'s server was ready after {time.monotonic() - began:.0f} s"
        try:
            return fine("start", f"{ready}, {' '.join(await self._facts())}")
        except (RequestError, *UNDECODABLE) as unread:
            return fine("start", f"{ready}. What its pod has isn't known: {unread}")

    async def _facts(self) -> Sequence[str]:
        pods = await self._pods(_Started)
        pod = next((it for it in pods if not it.metadata.deletion_timestamp), None)
        if pod is None:
            raise RequestError("no pod has its labels")
        namespace, name = pod.metadata.key
        path, field = f"/api/v1/namespaces/{namespace}/events", f"involvedObject.name={name}"
        return [*_facts(pod, await self._read(Event, path, fieldSelector=field))]

    async def _removed(self) -> list[Finding]:
        """Remove the server, wait until its pod is gone, and remove its own claim."""
        try:
            await self._stop()
            async with asyncio.timeout(_GONE_SECONDS):
                while await self._has_pod():  # noqa: ASYNC110, nothing here tells when
                    await asyncio.sleep(_LOOK_SECONDS)
            await self._delete_claims()
        except (HubApiError, RequestError, TimeoutError, *UNDECODABLE) as failed:
            text = (
                f"It isn't certain whether the server was removed: {failed or 'it takes too long'}."
            )
            self._tell(text)
            return [warning("start-left", text, self._where_to_look())]
        self._tell("The server was removed.")
        return []

    async def _stop(self) -> None:
        """Stop the server and remove it, unless the hub has refused to make it.

        Raises:
            HubApiError: It isn't stopped. A hub that hasn't answered yet may make it even now.
        """
        try:
            await self._api.ask("DELETE", self._path, {"remove": True} if self._name else None)
        except HubApiError as refused:
            if refused.status != HTTPStatus.NOT_FOUND or not self._is_answered:
                raise

    async def _has_pod(self) -> bool:
        try:
            return bool(await self._pods(_Object))
        except RequestError as unread:
            if unread.status == HTTPStatus.FORBIDDEN:
                raise
            return True  # other failures may pass

    async def _delete_claims(self) -> None:
        """Delete the claim of this server, which some versions of KubeSpawner leave.

        Only one that is named after this server is no other's.
        """
        if not self._name:
            return
        for it in await self._list(_Object, _CLAIMS, self._of_claim):
            if any(slug in it.metadata.name for slug in slugs_of(self._name)):
                namespace, name = it.metadata.key
                path = f"/api/v1/namespaces/{namespace}/{_CLAIMS}/{name}"
                status = await self._client.delete(path)
                if status >= HTTPStatus.BAD_REQUEST and status != HTTPStatus.NOT_FOUND:
                    raise RequestError(f"HTTP {status} for its claim {name}", status)

    def _where_to_look(self) -> str:
        where = f"--namespace {self._namespace}" if self._namespace else "--all-namespaces"
        return (
            f"Stop it on the hub's page. kubectl get pods,{_CLAIMS} {where} --selector "
            f"{self._of_owner or self._of_server} lists what the user has."
        )

    async def _pods(self, type_: type[_Pod]) -> list[_Pod]:
        """Return the server's pods."""
        found = await self._list(type_, "pods", self._of_server)
        if not self._name and not self._of_owner:  # these are everybody's default servers
            found = [it for it in found if it.metadata.annotations.user == self._user]
        return [it for it in found if it.metadata.uid not in self._others]

    async def _list(self, type_: type[T], plural: str, labels: str) -> Sequence[T]:
        return await self._read(type_, f"{self._place}/{plural}", labelSelector=labels)

    async def _read(self, type_: type[T], path: str, **query: str) -> Sequence[T]:
        async with self._client.get(path, query, _ANSWER_SECONDS) as response:
            body = await response.read()
        found: _List[T] = msgspec.json.decode(body, type=_List[type_])  # type: ignore[valid-type]
        return found.items or ()


def _facts(pod: StartingPod, events: Sequence[Event]) -> Iterator[str]:
    """Say where it ran, with which devices, and how its images came there."""
    limits = [it.resources.limits or {} for it in pod.spec.containers or () if it.resources]
    devices = [f"{n} × {name}" for it in limits for name, n in it.items() if "/" in name]
    having = f"with {' and '.join(devices)}" if devices else "without GPUs"
    yield f"on the node {pod.spec.node_name} {having}."
    for pull in (it.image for it in stages(pod, events)):
        if not isinstance(pull, Pulled):
            continue
        how = "was on the node" if pull.was_there else f"was pulled in {pull.seconds or 0:.1f} s"
        yield f"The image {pull.image} {how}."


def _not_started(user: str, refused: HubApiError) -> Finding:
    advice = "Read the hub's log, and ask gpuspawner explain which nodes have room."
    if refused.status in _OF_SCOPES:
        advice = (
            f"Give the token the scope servers!user={user}, which has read:servers and "
            "delete:servers in it, and look whether the hub knows the user, and whether policies "
            "allow the server."
        )
    if isinstance(refused, NoHubError):
        advice = "Look whether the hub is up, and whether --hub-api names its REST API."
    return error("start", f"{user}'s server didn't start: {refused}", advice)


def _selector(labels: Mapping[str, str]) -> str:
    """Select by the label of the owner; by none if it has the user's id, which the hub knows."""
    return "" if str(ANY_ID) in labels[USER] else f"{USER}={labels[USER]}"


def _path(user: str, server: str | None = None) -> str:
    """Return the path of a user, or of one of their servers."""
    path = f"/users/{quote(user, safe='')}"
    if server is None:
        return path
    return f"{path}/servers/{server}" if server else f"{path}/server"
