"""`gpuspawner explain`: why a server or a Pending pod has no room, node by node."""

import json
from inspect import cleandoc

from gpuspawner import messages
from gpuspawner.admission.rejection import Rejection
from gpuspawner.commands import terminal
from gpuspawner.commands.command import FromFiles, UsageError
from gpuspawner.commands.hub import Hub
from gpuspawner.commands.nodes import names
from gpuspawner.commands.reasons import Reason, reasons
from gpuspawner.commands.servers import Server, named, try_out
from gpuspawner.kube.pods import Pod
from gpuspawner.preflight.decision import Refuse
from gpuspawner.quoting import did_you_mean, quote
from gpuspawner.scheduling import Outcome, Verdict, explain

_STATUS = {Outcome.FITS: 0, Outcome.FITS_AFTER_PREEMPTION: 0, Outcome.UNKNOWN: 2}
"""The exit status of each outcome; 1 for all others."""


class Explain(FromFiles):
    """Explain why a server or a Pending pod has no room, node by node.

    The exit status is 0 if a node has room, 1 if none has, 2 if that is unknown, and 3 if the
    question can't be answered.
    """

    name = "explain"
    description = __doc__
    examples = cleandoc("""
        gpuspawner explain a100
        gpuspawner explain '{"accelerator": "a100", "gpus": 4}'
        gpuspawner explain pod jhub/jupyter-alice
        gpuspawner explain a100 --from folder-with-json-files
    """)

    async def ask(self, hub: Hub) -> int:
        """Print the reasons."""
        match self.extra_args:
            case ["pod", name]:
                return self._about_pod(hub, name)
            case [what]:
                return await self._about_server(hub, what, _options(hub, what))
            case []:
                return await self._about_server(hub, "the default server", {})
        raise UsageError(
            "give one accelerator, one profile, options as JSON, or pod NAMESPACE/NAME"
        )

    async def _about_server(self, hub: Hub, name: str, options: dict[str, object]) -> int:
        tried = await try_out(hub, Server(name, "", options))
        if tried.proposal is None:
            raise UsageError(tried.problem)
        if tried.pod is None:
            raise UsageError("the pod can't be built from this configuration")
        verdict = explain(hub.state, tried.pod, new_claims=tried.proposal.new_claims)
        said = messages.preview(tried.decision).text if tried.decision else ""
        if isinstance(tried.decision, Refuse) and tried.decision.rejection is not None:
            return self._rejected(name, tried.decision.rejection, said)
        return self._tell(hub, name, tried.pod, verdict, said)

    def _about_pod(self, hub: Hub, key: str) -> int:
        bound = hub.state.pods.get(key)
        if bound is not None:
            if self.output == "json":
                terminal.say_json({"outcome": "bound", "node": bound.node})
            else:
                terminal.say(f"{key} has a node: {bound.node}.")
            return 0
        pod = hub.state.unbound_pods.get(key)
        if pod is None:
            known = [*hub.state.unbound_pods]
            raise UsageError(f"there is no Pending pod {quote(key)}{did_you_mean(key, known)}")
        return self._tell(hub, key, pod, explain(hub.state, pod), "")

    def _rejected(self, name: str, rejection: Rejection, said: str) -> int:
        if self.output == "json":
            terminal.say_json(
                {"outcome": "rejected", "message": rejection.text, "users_read": said}
            )
        else:
            terminal.say(f"{name}: the API server rejects the pod.")
            terminal.say(f"It says: {rejection.text}")
            terminal.say(f"Users read: {said}")
        return 1

    def _tell(self, hub: Hub, name: str, pod: Pod, verdict: Verdict, said: str) -> int:
        if self.output == "json":
            terminal.say_json(_plain(verdict, said))
        else:
            terminal.say(f"{name}: {_headline(verdict)}")
            if said:
                terminal.say(f"Users read: {said}")
            if verdict.condition_message:
                terminal.say(f"kube-scheduler says: {verdict.condition_message}")
            for unknown in verdict.unknown:
                terminal.say(f"Unknown: {unknown.why}: {unknown.detail}")
            terminal.say()
            _table(reasons(hub.state, pod, verdict))
        return _STATUS.get(verdict.outcome, 1)


def _options(hub: Hub, text: str) -> dict[str, object]:
    if not text.lstrip().startswith("{"):
        return named(hub, text)
    try:
        read = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"these options aren't JSON: {error}") from error
    return dict(read)


def _headline(verdict: Verdict) -> str:
    match verdict.outcome:
        case Outcome.FITS:
            return f"there is room on {len(verdict.feasible)} of {verdict.nodes} nodes now."
        case Outcome.FITS_AFTER_PREEMPTION:
            return "a node has room once the scheduler has ended pods of lower priority."
        case Outcome.BUSY:
            return "no node has room now; one will when other pods end, or when it is back."
        case Outcome.IMPOSSIBLE:
            return f"none of the {verdict.nodes} nodes can ever hold it."
        case _:
            return "the known objects don't decide it."


def _table(found: list[Reason]) -> None:
    terminal.table(
        ("NODES", "WHY", "LATER", "NAMES"),
        [(len(it.nodes), it.text, it.later, names(it.nodes)) for it in found],
    )


def _plain(verdict: Verdict, said: str) -> dict[str, object]:
    return {
        "outcome": verdict.outcome.value,
        "message": verdict.condition_message,
        "users_read": said,
        "feasible": list(verdict.feasible),
        "busy": list(verdict.busy),
        "away": list(verdict.away),
        "unknown": [{"why": it.why.value, "detail": it.detail} for it in verdict.unknown],
        "nodes": verdict.reasons,
    }
