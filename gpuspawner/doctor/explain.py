"""`gpuspawner explain`: why a user can't have a server, or why it has no room, node by node."""

from collections.abc import Mapping, Sequence
from inspect import cleandoc

import msgspec
from traitlets import List, Unicode

from gpuspawner import messages
from gpuspawner.doctor import judged, terminal
from gpuspawner.doctor.application import UsageError
from gpuspawner.doctor.checks.labels import Label, of_every_server, wanted, written
from gpuspawner.doctor.hub import Hub
from gpuspawner.doctor.hub_command import FromFiles
from gpuspawner.doctor.judged import JudgedByPolicies, judge
from gpuspawner.doctor.nodes import names
from gpuspawner.gates.what_if import NOBODY, OfferedServer, asked_for, try_out
from gpuspawner.kube.pods import Pod
from gpuspawner.kube.quoting import count, did_you_mean, quote
from gpuspawner.messages.words import figure
from gpuspawner.policies.owner import Owner
from gpuspawner.preflight.decision import Refuse
from gpuspawner.preflight.rejection import Rejection
from gpuspawner.scheduling import (
    ClusterState,
    Failure,
    Failures,
    Insufficient,
    NodeInfo,
    Outcome,
    TooManyVolumes,
    Unselected,
    Untolerated,
    Verdict,
    VolumeElsewhere,
    explain,
)
from gpuspawner.start.policing import UNCOUNTED
from gpuspawner.start.refusal import Refusal

_STATUS = {Outcome.FITS: 0, Outcome.FITS_AFTER_PREEMPTION: 0, Outcome.UNKNOWN: 2}
"""The exit status of each outcome; 1 for all others."""


class Explain(FromFiles):
    """Explain why a server or a Pending pod has no room, node by node.

    With --user, the policies judge the server for that user first. The exit status is 0 if a node
    has room now, or once kube-scheduler has ended pods of lower priority; 1 if no node has, or if a
    policy or the API server denies the server; 2 if that is unknown; and 3 if the question can't be
    answered.
    """

    name = "explain"
    description = __doc__
    takes_words = True
    examples = cleandoc("""
        gpuspawner explain a100
        gpuspawner explain '{"accelerator": "a100", "gpus": 4}'
        gpuspawner explain pod jhub/jupyter-alice
        gpuspawner explain a100 --from folder-with-json-files
        gpuspawner explain a100 --user alice --group ml-2026
    """)

    user = Unicode(help="Judge the policies for this user, who owns the server.").tag(config=True)
    groups = List(
        Unicode(), help="A group that the user is in. The hub's database isn't read."
    ).tag(config=True, option="group")
    roles = List(Unicode(), help='A role of the user\'s, such as "admin".').tag(
        config=True, option="role"
    )
    server = Unicode(help="The server's name; by default, the default server.").tag(config=True)

    @property
    def owner(self) -> Owner:
        """The user, with the role that JupyterHub gives to every user."""
        if not self.user:
            if self.groups or self.roles or self.server:
                raise UsageError("--group, --role and --server need --user")
            return NOBODY
        roles = frozenset({"user", *self.roles})
        return Owner(self.user, frozenset(self.groups), roles, self.server)

    async def ask(self, hub: Hub) -> int:
        """Print the reasons."""
        match self.extra_args:
            case ["pod", _] if self.user:
                raise UsageError("--user asks about a server that doesn't exist yet, not a pod")
            case ["pod", name]:
                return self._about_pod(hub, name)
            case [what]:
                return await self._about_server(hub, what, asked_for(hub, what))
            case []:
                return await self._about_server(hub, "the default server", {})
        raise UsageError(
            "give one accelerator, one profile, options as JSON, or pod NAMESPACE/NAME"
        )

    async def _about_server(self, hub: Hub, name: str, options: dict[str, object]) -> int:
        tried = await try_out(hub, OfferedServer(name, "", options))
        if tried.proposal is None or tried.choice is None:
            raise UsageError(tried.problem)
        said = messages.preview(tried.decision).text if tried.decision else ""
        asked = Explained(name, said, await judge(hub, tried.choice) if self.user else None)
        if self.output == "text":
            _tell_policies(hub, asked, tried.proposal.key)
        if asked.judged and asked.judged.refusal:
            return self._denied(asked, asked.judged.refusal)
        if tried.pod is None:
            raise UsageError("the pod can't be built from this configuration")
        if isinstance(tried.decision, Refuse) and tried.decision.rejection is not None:
            return self._rejected(asked, tried.decision.rejection)
        verdict = explain(hub.state, tried.pod, new_claims=tried.proposal.new_claims)
        return self._tell(hub, asked, tried.pod, verdict)

    def _about_pod(self, hub: Hub, key: str) -> int:
        bound = hub.state.pods.get(key)
        if bound is not None:
            text = f"{key} has a node: {bound.node}."
            self.answer({"outcome": "bound", "node": bound.node}, lambda: terminal.say(text))
            return 0
        pod = hub.state.unbound_pods.get(key)
        if pod is None:
            known = [*hub.state.unbound_pods]
            raise UsageError(f"there is no Pending pod {quote(key)}{did_you_mean(key, known)}")
        return self._tell(hub, Explained(key), pod, explain(hub.state, pod))

    def _denied(self, asked: "Explained", refusal: Refusal) -> int:
        is_unknown = refusal.slug == UNCOUNTED
        if self.output == "json":
            outcome = Outcome.UNKNOWN.value if is_unknown else "denied"
            terminal.say_json({"outcome": outcome, **asked.plain, "users_read": refusal.text})
        return _STATUS[Outcome.UNKNOWN] if is_unknown else 1

    def _rejected(self, asked: "Explained", rejection: Rejection) -> int:
        if self.output == "json":
            terminal.say_json({"outcome": "rejected", "message": rejection.text, **asked.plain})
        else:
            terminal.say(f"{asked.name}: the API server rejects the pod.")
            terminal.say(f"It says: {rejection.text}")
            terminal.say(f"{asked.readers}: {asked.said}")
        return 1

    def _tell(self, hub: Hub, asked: "Explained", pod: Pod, verdict: Verdict) -> int:
        if self.output == "json":
            terminal.say_json({**_plain(verdict), **asked.plain})
        else:
            terminal.say(f"{asked.name}: {_headline(verdict)}")
            if asked.said:
                terminal.say(f"{asked.readers}: {asked.said}")
            if verdict.condition_message:
                terminal.say(f"kube-scheduler says: {verdict.condition_message}")
            for unknown in verdict.unknown:
                terminal.say(f"Unknown: {unknown}")
            terminal.say()
            rows = _rows(hub.state, pod, verdict, of_every_server(hub.spawner))
            terminal.table(("NODES", "WHY", "LATER", "NAMES"), rows)
        return _STATUS.get(verdict.outcome, 1)


class Explained(msgspec.Struct, frozen=True):
    """A question, and what the hub would say to it.

    Attributes:
        name: Of the server or the pod.
        said: What users read about room for it.
        judged: What the policies say, if it is for a user.
    """

    name: str
    said: str = ""
    judged: JudgedByPolicies | None = None

    @property
    def readers(self) -> str:
        """Who reads it, as the beginning of a sentence."""
        return f"{self.judged.owner.name} reads" if self.judged else "Users read"

    @property
    def plain(self) -> dict[str, object]:
        """The answer for programs."""
        policies = judged.plain(self.judged) if self.judged else None
        return {"users_read": self.said, "policies": policies}


def _tell_policies(hub: Hub, asked: Explained, pod: tuple[str, str]) -> None:
    """Say what the policies say, or that nobody has asked them."""
    if asked.judged is None:
        if hub.policies:
            terminal.say("GPUSpawner.policies aren't judged; to judge them, add --user NAME.")
        return
    key = "/".join(pod)
    if key in hub.state.pods or key in hub.state.unbound_pods:
        terminal.say(f"The pod {key} exists. This is the answer when the server has stopped.")
    judged.tell(asked.name, asked.judged)


def _headline(verdict: Verdict) -> str:
    match verdict.outcome:
        case Outcome.FITS:
            return f"there is room on {len(verdict.feasible)} of {count(verdict.nodes)} now."
        case Outcome.FITS_AFTER_PREEMPTION:
            return "a node has room once the scheduler has ended pods of lower priority."
        case Outcome.BUSY:
            busy = "when other pods end" if verdict.busy else ""
            away = "when a node is back" if verdict.away else ""
            return f"no node has room now; one will {' or '.join(filter(None, (busy, away)))}."
        case Outcome.IMPOSSIBLE:
            return f"no node can ever hold it, of {count(verdict.nodes)}."
        case _:
            return "the known objects don't decide it."


def _plain(verdict: Verdict) -> dict[str, object]:
    return {
        "outcome": verdict.outcome.value,
        "message": verdict.condition_message,
        "feasible": list(verdict.feasible),
        "busy": list(verdict.busy),
        "away": list(verdict.away),
        "unknown": [{"why": it.why.value, "detail": it.detail} for it in verdict.unknown],
        "nodes": dict(sorted(verdict.reasons.items())),
    }


# Why nodes can't hold a pod: one row for all nodes that share a reason.

_LATER = ("now", "when pods end", "when it is back", "-")
"""When nodes could hold the pod, the nearest first."""


def _rows(
    state: ClusterState, pod: Pod, verdict: Verdict, every: Mapping[Label, str]
) -> list[tuple[object, ...]]:
    """Group all nodes; those that come nearest to holding the pod are first.

    *every* has the labels that settings ask of every server's node, and those settings.
    """
    groups: dict[tuple[int, tuple[str, ...]], list[tuple[NodeInfo, Failures]]] = {}
    busy, away, fits = set(verdict.busy), set(verdict.away), set(verdict.feasible)
    for name, node in state.nodes.items():
        failures = verdict.failures.get(name, ())
        rank = 0 if name in fits else 1 if name in busy else 2 if name in away else 3
        key = tuple(_key(failure, node, pod, every) for failure in failures)
        groups.setdefault((rank, key), []).append((node, failures))
    return [
        (len(its), _text(key, its), _LATER[rank], names(node for node, _ in its))
        for (rank, key), its in sorted(groups.items(), key=lambda it: (it[0][0], -len(it[1])))
    ]


def _key(failure: Failure, node: NodeInfo, pod: Pod, every: Mapping[Label, str]) -> str:
    """Return the text of a failure; what differs from node to node is left to `_text`."""
    match failure:
        case Untolerated(key=key, value=value, effect=effect):
            has = f"{key}={value}" if value else key
            return f"untolerated taint {has}:{effect}"
        case Unselected():
            return _unselected(node, pod, every)
        case TooManyVolumes(driver=driver, limit=limit):
            return f"{failure.reason} ({limit} of {driver})"
        case VolumeElsewhere(claim=claim, volume=volume):
            return f"{failure.reason} (claim {claim}, volume {volume})"
    return failure.reason


def _unselected(node: NodeInfo, pod: Pod, every: Mapping[Label, str]) -> str:
    for label in wanted(pod.spec):
        if node.labels.get(label[0]) not in label[1]:
            place = f", for which {every[label]} asks" if label in every else ""
            return f"no label {written(label)}{place}"
    return Unselected.reason


def _text(key: tuple[str, ...], its: Sequence[tuple[NodeInfo, Failures]]) -> str:
    if not key:
        return "has room"
    texts = []
    for at, text in enumerate(key):
        short = [f for _, failures in its if isinstance(f := failures[at], Insufficient)]
        texts.append(f"{text}: {_amounts(short)}" if short else text)
    return "; ".join(texts)


def _amounts(short: Sequence[Insufficient]) -> str:
    """Say what a pod asks for, and the most that one of the nodes has."""
    resource, asked = short[0].resource, short[0].asked
    free, most = max(it.free for it in short), max(it.allocatable for it in short)
    return (
        f"asks for {figure(resource, asked)}, free {figure(resource, max(0, free))} of "
        f"{figure(resource, most)}"
    )
