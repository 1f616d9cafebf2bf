"""Whether the hub has its rights, and what comes of it without each."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from http import HTTPStatus

import msgspec
from msgspec.structs import asdict

from gpuspawner.cluster.client import Client, RequestError
from gpuspawner.cluster.health import Live
from gpuspawner.cluster.kinds import (
    KARPENTER_KINDS,
    KINDS,
    KUEUE_KINDS,
    MACHINE_KINDS,
    ObjectKind,
)
from gpuspawner.configuration import values
from gpuspawner.doctor.hub import Hub
from gpuspawner.messages.administrators import GRANT, WITHOUT, Finding, error, fine, warning
from gpuspawner.policies.policies import Policies
from gpuspawner.scaling.pools import NONE
from gpuspawner.scaling.unseen_autoscalers import autoscaler_kinds

NO_SERVERS = "rights-servers"
_READ = ("list", "watch")
_PATIENCE, _ANSWER_SECONDS = 5.0, 10.0
_CLAIMS, _EVENTS = "persistentvolumeclaims", "events"
_START = {
    "pods": ("get", "list", "watch", "create", "delete"),
    _CLAIMS: ("get", "create"),
    _EVENTS: _READ,
}
"""What KubeSpawner needs in the hub's namespace; the chart's Role grants it."""
_UNLESS_OFF = {_CLAIMS: "storage_pvc_ensure", _EVENTS: "events_enabled"}
"""KubeSpawner's traits without which it needs none of a kind."""
_BIND = (
    "Bind {user} to a Role that allows it; the chart of Zero to JupyterHub has one (rbac.create)."
)


class Right(msgspec.Struct, frozen=True):
    """A right, as RBAC names it; without a namespace or a name it holds for all of them."""

    verb: str
    resource: str
    group: str = ""
    namespace: str = ""
    name: str = ""


async def check(hub: Hub) -> list[Finding]:
    """Ask the API server about each right."""
    client, namespace = hub.runtime.client, hub.spawner.namespace
    starting = [
        Right(verb, plural, namespace=namespace)
        for plural, verbs in _START.items()
        for verb in verbs
        if plural not in _UNLESS_OFF or any(values(hub.spawner, _UNLESS_OFF[plural]))
    ]
    following = [Right(verb, _EVENTS, namespace=namespace) for verb in _READ]
    user = await user_of(client)
    found = [_identity(user, namespace)]
    try:
        missing = await denied(client, {*_reading(KINDS), *starting, *following})
        scaling = await _about_scaling(hub)
        queues = await _about_queues(client)
    except RequestError as failed:
        make = warning if isinstance(hub.view.health(), Live) else error
        text = f"The API server doesn't say what the hub may do ({failed})."
        advice = "Ask it with kubectl auth can-i for each right that gpuspawner rbac prints."
        return [*found, make("rights", text, advice)]
    bind = _BIND.format(user=user or "its user")
    return [
        *found,
        *_about_reading(missing),
        *scaling,
        *queues,
        *_about_starting([it for it in starting if it in missing], namespace, bind),
        *_about_following(missing.intersection(following).difference(starting), namespace, bind),
        *_about_counting(hub, missing),
    ]


def _identity(user: str, namespace: str) -> Finding:
    text = f"These answers hold for {user or 'an unknown user'} and the namespace {namespace}."
    if user.startswith("system:serviceaccount:"):
        return fine("identity", text)
    advice = (
        "To check the hub's own rights, run this command in the hub's pod or with its KUBECONFIG."
    )
    return fine("identity", text, advice)


def _about_reading(missing: Set[Right]) -> Iterator[Finding]:
    lacking = {it: verbs for it in KINDS if (verbs := _verbs(_reading([it]), missing))}
    for kind, verbs in lacking.items():
        make = error if kind.required else warning
        yield make(
            f"rights-{kind.plural}",
            f"The hub isn't allowed to {verbs} {kind.plural}, so {WITHOUT[kind.plural]}.",
            GRANT.format(verbs=verbs, what=kind.plural),
        )
    if not lacking:
        yield fine("rights", "The hub may read everything that the verdicts need.")


async def _about_scaling(hub: Hub) -> list[Finding]:
    """Check the rights about autoscalers' objects, if the cluster may have such autoscalers."""
    if hub.spawner.autoscaling == NONE:
        return []
    client = hub.runtime.client
    nodes, place = hub.state.nodes.values(), hub.spawner.autoscaler_status
    kinds = await autoscaler_kinds(client, nodes, place)
    status = [it for it in kinds if it.field_selector]
    return [
        *await _about_program(client, "Karpenter", [it for it in kinds if it in KARPENTER_KINDS]),
        *await _about_program(client, "OpenShift", [it for it in kinds if it in MACHINE_KINDS]),
        *(await _about_groups(client, status[0]) if status else []),
    ]


async def _about_queues(client: Client) -> list[Finding]:
    """Check the rights about Kueue's objects, if the cluster has Kueue."""
    if not await client.serves(KUEUE_KINDS[0].group, _PATIENCE):
        return []
    return await _about_program(client, "Kueue", KUEUE_KINDS)


async def _about_program(client: Client, name: str, kinds: Sequence[ObjectKind]) -> list[Finding]:
    """Check the rights about the objects of a program that is installed."""
    rights = _reading(kinds)
    missing = await denied(client, rights)
    if not missing:
        return []
    plurals = list(dict.fromkeys(right.resource for right in rights if right in missing))
    verbs, what = _verbs(rights, missing), " and ".join(plurals)
    return [
        warning(
            f"rights-{name.lower()}",
            f"{name} is installed, but the hub isn't allowed to {verbs} {what}, so "
            f"{WITHOUT[plurals[0]]}.",
            GRANT.format(verbs=verbs, what=what),
        )
    ]


async def _about_groups(client: Client, status: ObjectKind) -> list[Finding]:
    namespace, name = status.path.split("/")[4], status.field_selector.partition("=")[2]
    rights = [Right(it, status.plural, "", namespace, name) for it in _READ]
    verbs = _verbs(rights, await denied(client, rights))
    if not verbs:
        return []
    what = f"the ConfigMap {name} in {namespace}"
    return [
        warning(
            "rights-cluster-autoscaler",
            f"The hub isn't allowed to {verbs} {what}. So {WITHOUT[status.plural]}.",
            f"{GRANT.format(verbs=verbs, what=what)} If the number of nodes is fixed, set "
            "GPUSpawner.autoscaling = 'none' instead.",
        )
    ]


def _about_starting(missing: Sequence[Right], namespace: str, bind: str) -> Iterator[Finding]:
    if refused := ", ".join(f"{it.verb} {it.resource}" for it in missing):
        yield error(
            NO_SERVERS,
            f"The hub isn't allowed to {refused} in the namespace {namespace}, so KubeSpawner "
            "can't start servers there.",
            bind,
        )


def _about_following(missing: Set[Right], namespace: str, bind: str) -> Iterator[Finding]:
    """Check the right to events, which the hub itself reads also if KubeSpawner doesn't."""
    if verbs := _verbs(missing, missing):
        yield warning(
            "rights-events",
            f"The hub isn't allowed to {verbs} events in the namespace {namespace}. "
            "So a start doesn't end when an autoscaler says that no node comes for it, and its "
            "owner reads less about what it waits for.",
            bind,
        )


def _about_counting(hub: Hub, missing: Set[Right]) -> Iterator[Finding]:
    """Check the right to count servers, if policies may have limits that need it."""
    policies, accounts = hub.policies, hub.runtime.accounts
    if accounts is None or (isinstance(policies, Policies) and not policies.count_others):
        return
    namespace = accounts.namespace
    rights = [Right(verb, "pods", namespace=namespace) for verb in _READ]
    if verbs := _verbs(rights, missing):
        place = f"the namespace {namespace}"
        there = place if namespace else "all namespaces"
        yield error(
            "rights-policies",
            f"The hub isn't allowed to {verbs} pods in {there}, so it can't count what "
            "GPUSpawner.policies limits, and refuses servers to which a limit per user or per "
            "group applies.",
            f"Grant {verbs} on pods in a Role of {place}; the chart of Zero to JupyterHub has one "
            "(rbac.create)."
            if namespace
            else GRANT.format(verbs=verbs, what="pods"),
        )


def _reading(kinds: Iterable[ObjectKind]) -> list[Right]:
    groups = ((it.plural, it.group.removeprefix("/apis/")) for it in kinds)
    return [Right(verb, *its) for its in groups for verb in _READ]


def _verbs(rights: Iterable[Right], missing: Set[Right]) -> str:
    """Name the verbs of rights that are missing; "" if none is."""
    lacking = {it.verb for it in rights if it in missing}
    return " and ".join(verb for verb in _READ if verb in lacking)


# What the API server allows the commands' user, as it says itself.


class _UserInfo(msgspec.Struct):
    username: str = ""


class _Status(msgspec.Struct, rename="camel"):
    allowed: bool = False
    user_info: _UserInfo = msgspec.field(default_factory=_UserInfo)


class _Answer(msgspec.Struct):
    status: _Status = msgspec.field(default_factory=_Status)


async def denied(client: Client, rights: Iterable[Right]) -> set[Right]:
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


async def user_of(client: Client) -> str:
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
        async with asyncio.timeout(_ANSWER_SECONDS):
            status, answer = await client.post(f"/apis/{version}/{kind.lower()}s", {}, body)
    except TimeoutError as error:
        raise RequestError(f"no answer within {_ANSWER_SECONDS:.0f} s") from error
    if status != HTTPStatus.CREATED:
        raise RequestError(f"HTTP {status} for a {kind}", status)
    try:
        return msgspec.json.decode(answer, type=_Answer)
    except msgspec.MsgspecError as error:
        raise RequestError(f"the {kind} isn't understood: {error}") from error
