"""Lets a server avoid the nodes whose GPUs have failed its owner's last ones.

A pod must never wait for a node that it could have had. So it is kept off these nodes only if it
surely has room elsewhere; otherwise the scheduler is asked to prefer others.
"""

from gpuspawner.offers.node_affinity import off, rather_off
from gpuspawner.offers.vendors import HOSTNAME
from gpuspawner.preflight.dry_runs import Admission
from gpuspawner.runtime import Runtime
from gpuspawner.start.host import Host
from gpuspawner.start.pod_builder import requested
from gpuspawner.start.source import Choice
from gpuspawner.traits import OFF
from gpuspawner.traits.trait_types import setting


async def avoiding(
    spawner: Host, runtime: Runtime, choice: Choice, admission: Admission
) -> tuple[Choice, bool] | None:
    """Return the choice with a pod that avoids its owner's failed nodes; None if there are none.

    Also return whether it can't get one of them.
    """
    hostnames = _hostnames(spawner, runtime)
    if not hostnames or not _has_devices(choice, runtime):
        return None
    pod = choice.proposal.pod
    kept_off = choice.sending(off(pod, hostnames))
    judges = setting(spawner, "preflight") != OFF
    if judges and await runtime.preflight.secures(kept_off.proposal, admission):
        return kept_off, True
    return choice.sending(rather_off(pod, hostnames)), False


def _has_devices(choice: Choice, runtime: Runtime) -> bool:
    """Whether a pod requests devices in any container: a hook may put another before the server."""
    return requested(choice.proposal.decoded, runtime.view.state.rules).accelerator is not None


def _hostnames(spawner: Host, runtime: Runtime) -> list[str]:
    nodes = runtime.view.state.nodes
    names = runtime.avoided.of(spawner.user.name)
    return [nodes[it].labels.get(HOSTNAME, it) if it in nodes else it for it in names]
