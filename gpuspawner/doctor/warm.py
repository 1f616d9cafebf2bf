"""`gpuspawner warm`: placeholders that keep nodes ready for servers, and make way for them."""

import re
from inspect import cleandoc

import yaml
from kubespawner.slugs import is_valid_label, safe_slug
from traitlets import Int, Unicode

from gpuspawner.doctor import terminal
from gpuspawner.doctor.application import UsageError
from gpuspawner.doctor.hub import Hub
from gpuspawner.doctor.hub_command import PROFILE_HELP, FromFiles
from gpuspawner.gates.what_if import proposed
from gpuspawner.kube.nodes import PriorityClass
from gpuspawner.kube.objects import Manifest
from gpuspawner.kube.pods import Pod
from gpuspawner.kube.quoting import did_you_mean, listing
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.scheduling import ClusterState
from gpuspawner.scheduling.priority import priority_of
from gpuspawner.scheduling.requests import CPU, Amounts, is_device, pod_requests

OF_THE_CHART = "user-placeholder-priority"
"""How the name of the chart's PriorityClass for placeholders ends, after that of the release."""

NAME = "gpuspawner-warm"
"""How the name of a Deployment begins, and the label of its pods."""

_PAUSE = "registry.k8s.io/pause:3.10.1"
_PLACES = ("nodeSelector", "tolerations", "schedulerName")
_RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 65534,
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""What the strictest Pod Security level asks of a container."""


class Warm(FromFiles):
    """Print placeholder pods that keep room for servers, for kubectl.

    Each requests what one server does, so autoscalers add nodes for them, and kube-scheduler ends
    one as soon as a server needs its room. They need a PriorityClass with a lower value than that
    of servers: the Zero-to-JupyterHub chart has one if scheduling.podPriority.enabled is true. The
    output is YAML, unless --output json is set.
    """

    name = "warm"
    description = __doc__
    examples = cleandoc("""
        gpuspawner warm --servers 50 --profile t4 | kubectl apply --filename -
        gpuspawner warm --profile t4 | kubectl delete --filename -
    """)

    servers = Int(1, min=0, help="How many servers the placeholders keep room for.").tag(
        config=True
    )
    profile = Unicode(help=PROFILE_HELP).tag(config=True)
    priority_class = Unicode(
        help="The PriorityClass; by default, the chart's own for placeholders."
    ).tag(config=True)

    async def ask(self, hub: Hub) -> int:
        """Print the Deployment."""
        if not self.profile:
            raise UsageError("name an accelerator or a profile with --profile")
        proposal, _ = await proposed(hub, self.profile)
        server = proposal.decoded
        if server is None:
            raise UsageError("the pod can't be read")
        lowest = _below(hub.state, server, self.priority_class)
        requests = pod_requests(server, hub.state.rules)
        made = placeholders(proposal, requests, self.servers, lowest)
        self.answer(made, lambda: terminal.pass_on(yaml.safe_dump(made, sort_keys=False)))
        return 0


def _below(state: ClusterState, server: Pod, name: str) -> str:
    """Return the PriorityClass of this name, or the chart's, which has to be below that of servers.

    Raises:
        UsageError: There is none, several are possible, or servers wouldn't preempt its pods.
    """
    values = {it.metadata.name: it.value for it in state.storage.all(PriorityClass)}
    found = [it for it in values if (it == name if name else it.endswith(OF_THE_CHART))]
    if len(found) != 1:
        advice = "set scheduling.podPriority.enabled in the chart, or name one by --priority-class"
        many = f": {listing(sorted(found))}" if found else did_you_mean(name, values)
        raise UsageError(f"the cluster has {len(found)} such PriorityClasses{many}; {advice}")
    its, effect = priority_of(server, state), "servers would not get the room of such placeholders"
    if values[found[0]] >= its.value:
        raise UsageError(
            f"the priority of {found[0]} is {values[found[0]]} and that of a server {its.value}, "
            f"so {effect}"
        )
    if not its.preempts:
        raise UsageError(f"servers have the preemptionPolicy Never, so {effect}")
    return found[0]


def placeholders(
    proposal: Proposal, requests: Amounts, servers: int, priority_class: str
) -> Manifest:
    """Return a Deployment of pods that the scheduler places as it places these servers."""
    spec = proposal.pod["spec"]
    kind = re.sub(r"[^a-z0-9]+", "-", "-".join(proposal.kind).lower()).strip("-") or "cpu"
    # What is too long for a name that begins with `NAME` is cut; names may begin alike.
    kind = safe_slug(kind, is_valid=is_valid_label, max_length=63 - len(f"{NAME}-"))
    nodes = (spec.get("affinity") or {}).get("nodeAffinity")
    template = {
        **{it: spec[it] for it in _PLACES if spec.get(it)},
        **({"affinity": {"nodeAffinity": nodes}} if nodes else {}),
        "priorityClassName": priority_class,
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "containers": [
            {
                "name": "pause",
                "image": _PAUSE,
                "resources": _resources(requests),
                "securityContext": _RESTRICTED,
            }
        ],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"{NAME}-{kind}", "namespace": proposal.namespace},
        "spec": {
            "replicas": servers,
            "selector": {"matchLabels": {NAME: kind}},
            "template": {"metadata": {"labels": {NAME: kind}}, "spec": template},
        },
    }


def _resources(amounts: Amounts) -> Manifest:
    """Return what a server requests altogether, as one container's; devices need a limit."""
    requests = {it: f"{n}m" if it == CPU else str(n) for it, n in amounts.items() if n}
    return {"requests": requests, "limits": {it: n for it, n in requests.items() if is_device(it)}}
