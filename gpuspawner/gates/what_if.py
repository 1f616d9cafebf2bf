"""What the hub would say to a server that nobody has asked for, for somebody who need not exist."""

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import msgspec
from tornado import web

from gpuspawner.compat.kubespawner import is_of_others
from gpuspawner.gates.sources import Sources
from gpuspawner.kube.pods import Pod
from gpuspawner.kube.quoting import one_line
from gpuspawner.language import gettext as _
from gpuspawner.policies.owner import Owner
from gpuspawner.preflight.decision import Decision, Refuse, rejected
from gpuspawner.preflight.dry_runs import Admission
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.preflight.rejection import OverQuota, Rejection
from gpuspawner.runtime import Runtime
from gpuspawner.start import hooks
from gpuspawner.start.host import within_start_timeout
from gpuspawner.start.refusal import Refusal
from gpuspawner.start.request_options import PROFILE, Sketch
from gpuspawner.start.source import Choice

NOBODY = Owner("gpuspawner")
"""The owner of servers that belong to nobody in particular."""
NO_ID = 0
"""The id of a user whose id isn't known; the hub's database counts from 1."""


class UnusableError(Exception):
    """There can be no such server, no matter what the cluster has."""


class Asking(msgspec.Struct, frozen=True):
    """Whom to ask.

    Attributes:
        spawner: A `GPUSpawner` as the hub would make one, for the owner's server.
        admission: The API server's dry runs; without a cluster, they have no answer.
    """

    spawner: Any
    runtime: Runtime
    admission: Admission


class OfferedServer(msgspec.Struct, frozen=True):
    """One choice that users have.

    Attributes:
        offer: The accelerator or profile, as a sentence names it.
        place: Where it stands in the configuration.
        options: As a user would send them.
        more: How it differs from the smallest server of the offer; "" if it is the smallest.
    """

    offer: str
    place: str
    options: dict[str, object]
    more: str = ""

    @property
    def name(self) -> str:
        """The whole choice, as a sentence names it."""
        return f"{self.offer} with {self.more}" if self.more else self.offer

    @property
    def smallest(self) -> bool:
        """Whether no choice of the same offer needs less."""
        return not self.more


class Tried(msgspec.Struct, frozen=True):
    """A server, and what the hub would say.

    Attributes:
        proposal: Its pod, after admission; None if there can be no pod.
        problem: Why there can be no pod.
        failure: How an administrator's code fails for the owner, if that is why.
        choice: What the options mean, before admission; None if they mean nothing.
    """

    server: OfferedServer
    proposal: Proposal | None = None
    decision: Decision | None = None
    problem: str = ""
    choice: Choice | None = None
    failure: Exception | None = None

    @property
    def pod(self) -> Pod | None:
        """The proposal's pod; None if there can be none, or it can't be read."""
        return self.proposal.decoded if self.proposal else None

    @property
    def resources(self) -> frozenset[str]:
        """The names of what its containers may use."""
        containers = (self.pod.spec.containers or ()) if self.pod else ()
        return frozenset(
            name for it in containers if it.resources for name in it.resources.limits or ()
        )

    @property
    def runtime_class(self) -> str:
        """The name of its RuntimeClass; "" for the nodes' default runtime."""
        spec = self.proposal.pod.get("spec") if self.proposal else None
        return str((spec or {}).get("runtimeClassName") or "")


async def try_out(asking: Asking, server: OfferedServer) -> Tried:
    """Resolve a server's options, ask admission, and judge the pod that comes back."""
    choice, problem = None, _("KubeSpawner can't make a pod of its settings.")
    try:
        choice = await resolved(asking, server.options)
    except UnusableError as error:
        problem = str(error)
    if choice is None or choice.proposal.pod.get("spec") is None:
        failed = await _failure(asking.spawner, server.options)
        is_of_code = isinstance(failed, TimeoutError) or (failed and is_of_others(failed))
        if choice is not None and failed is not None:
            problem = f"{problem[:-1]}: {failed!r}."
        return Tried(server, problem=problem, failure=failed if is_of_code else None)
    proposal = choice.proposal
    admitted = await asking.admission.admit(proposal.namespace, proposal.pod)
    if isinstance(admitted, Rejection):
        decision = rejected(proposal.grant, admitted)
        return Tried(server, proposal, decision, choice=choice)
    if admitted is not None:
        proposal = proposal.admitted(admitted)
    return Tried(server, proposal, asking.runtime.preflight.decider.check(proposal), choice=choice)


async def _failure(spawner: Any, options: Mapping[str, object]) -> Exception | None:
    """Return how the making of the pod fails for the spawner's owner, if it does."""
    started = hooks.as_started(spawner).gpuspawner_copy()
    started.user_options = dict(options)
    try:
        async with within_start_timeout(started):
            if started.profile_list:
                await started.gpuspawner_stock.load_user_options()
            await started.gpuspawner_stock.make_pod()
    except Exception as failed:  # noqa: BLE001, it may be the administrator's code
        return failed
    return None


async def resolved(asking: Asking, raw: Mapping[str, object]) -> Choice:
    """Read options as a user would send them; what has to be written in may be missing.

    Raises:
        UnusableError: They mean no server that the owner may have.
    """
    try:
        sources: Sources = asking.spawner.gpuspawner_gates.sources
        return await sources.resolve(Sketch(raw))
    except Refusal as error:
        raise UnusableError(one_line(error.details or error.text)) from error
    except web.HTTPError as error:  # an administrator's function forbids it
        said = (error.log_message or "") % error.args or str(error)
        raise UnusableError(one_line(said)) from error
    except Exception as error:
        if not hasattr(error, "jupyterhub_message"):  # the function's own words
            raise
        raise UnusableError(one_line(str(error.jupyterhub_message))) from error


def asked_for(asking: Asking, what: str) -> dict[str, object]:
    """Return the options that choose an accelerator or a profile by its key, or that are JSON.

    Raises:
        UnusableError: They aren't JSON.
    """
    if not what.lstrip().startswith("{"):
        # Messages and answers name the choice of no GPU as JSON does.
        chosen = None if what == "null" else what
        if asking.spawner.gpuspawner_gates.sources.accelerators:
            return {"accelerator": chosen}
        return {PROFILE: what} if chosen or hooks.profiles_of(asking.spawner) else {}
    try:
        return dict(json.loads(what))
    except (ValueError, RecursionError) as error:
        text = _("these options aren't JSON: {error}")
        raise UnusableError(text.format(error=error)) from error


async def proposed(asking: Asking, what: str) -> tuple[Proposal, Choice]:
    """Return the proposal of the server that `asked_for` chooses, after admission, and the choice.

    Raises:
        UnusableError: There can be no such server. A quota that is used up is no reason.
    """
    tried = await try_out(asking, OfferedServer(what, "", asked_for(asking, what)))
    rejection = tried.decision.rejection if isinstance(tried.decision, Refuse) else None
    if rejection is not None and not isinstance(rejection.cause, OverQuota):
        text = _("the API server rejects the pod: {why}")
        raise UnusableError(text.format(why=rejection.text))
    if tried.proposal is None or tried.choice is None:
        raise UnusableError(tried.problem)
    return tried.proposal, tried.choice


def imagined(
    kind: type[Any], config: Any, owner: Owner, database: Any = None, id_: int = NO_ID
) -> Any:
    """Make one of the hub's spawners for somebody who isn't in its database.

    KubeSpawner builds its pod from these attributes.
    """
    escaped = quote(owner.name, safe="@~")
    user = SimpleNamespace(
        name=owner.name, escaped_name=escaped, id=id_, admin="admin" in owner.roles,
        url=f"/user/{escaped}/", groups=[*map(_named, owner.groups)],
        roles=[*map(_named, owner.roles)], db=database, spawners={},
    )  # fmt: skip
    address = "http://hub:8081/hub/"
    hub = SimpleNamespace(base_url="/hub/", url=address, api_url=f"{address}api", public_host="")
    row = SimpleNamespace(name=owner.server, server=None)
    spawner = kind(config=config, user=user, hub=hub, orm_spawner=row)
    user.spawners[owner.server] = spawner
    return spawner


def _named(name: str) -> SimpleNamespace:
    """Make a group or role, whose own roles aren't known."""
    return SimpleNamespace(name=name, roles=[])
