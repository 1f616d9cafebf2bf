"""What becomes of many equal servers: by policies, by quotas, and then by the nodes."""

from math import ceil

import msgspec

from gpuspawner.cluster.background import Turn
from gpuspawner.gates.what_if import Asking, UnusableError, proposed
from gpuspawner.kube.objects import UNDECODABLE, Manifest
from gpuspawner.kube.quantity import parse_quantity
from gpuspawner.language import gettext as _
from gpuspawner.messages.policies import denied_to_many
from gpuspawner.policies.limits import Uncounted
from gpuspawner.policies.policy_gates import ByPolicies
from gpuspawner.preflight.capacity import Headroom, ServerLimit, headroom
from gpuspawner.preflight.preflight import START_PATIENCE
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.preflight.rejection import OverQuota, Rejection
from gpuspawner.start.refusal import Refusal
from gpuspawner.start.source import Choice


class ManyServers(msgspec.Struct, frozen=True):
    """What becomes of them.

    Attributes:
        queue: The queue of Kueue in which the servers wait, and whose quota nobody has judged; "".
        unjudged_quotas: Why the namespace's quotas can't be judged; "" if they are.
    """

    found: Headroom
    queue: str = ""
    unjudged_quotas: str = ""


async def capacity(asking: Asking, what: str, servers: int, turn: Turn) -> ManyServers:
    """Judge the policies for members of the owner's groups, then quotas, and then the nodes.

    *what* chooses the servers, as in `asked_for`.

    Raises:
        UnusableError: There can be no such server, or the policies can't be judged.
    """
    proposal, choice = await proposed(asking, what)
    await turn.end_if_long()
    limits = [*await _by_policies(asking, choice, servers)]
    left, said = await _left_by_quotas(asking, choice.proposal, servers)
    if left < servers:
        limits.append(ServerLimit("", left, said))
    await turn.end_if_long()
    running = asking.runtime
    preflight = running.preflight
    promised = preflight.reservations.unshown()
    found = await headroom(
        running.view.state, preflight.to_come, proposal, servers, turn, limits, promised
    )
    return ManyServers(found, proposal.queue or "", said if left == servers else "")


async def _by_policies(asking: Asking, choice: Choice, servers: int) -> tuple[ServerLimit, ...]:
    policies = asking.runtime.policies
    if policies is None:
        return ()
    policing = ByPolicies(asking.spawner, asking.runtime, policies)
    try:
        applying = await policing.applying(START_PATIENCE)
        left, denial = applying.left_to_members(choice.proposal, choice.profile, servers)
    except Refusal as failed:
        raise UnusableError(failed.details or failed.text) from failed
    except UNDECODABLE as error:
        text = _("nobody can tell what the pod takes: {error}")
        raise UnusableError(text.format(error=error)) from error
    if isinstance(denial, Uncounted):
        raise UnusableError(_("the servers can't be counted: {why}").format(why=denial.why))
    if denial is None:
        return ()
    said = denied_to_many(denial, left, {**asking.runtime.display_names, **choice.display_names})
    return (ServerLimit(denial.policy.name, left, said),)


async def _left_by_quotas(asking: Asking, proposal: Proposal, servers: int) -> tuple[int, str]:
    """Return how many servers the namespace's quotas allow, and what the API server says.

    It judges its quotas itself, by a dry run of one pod that requests as much as all servers. If it
    rejects that pod for another reason, nobody knows.
    """
    left, text = servers, ""
    while left:
        try:
            together = _together(proposal.pod, left)
        except (*UNDECODABLE, AttributeError) as error:
            return servers, str(error)
        said = await asking.admission.admit(proposal.namespace, together)
        if not isinstance(said, Rejection):
            break
        text = said.text
        if not isinstance(said.cause, OverQuota):
            break
        left = min(max(0, (it.limit - it.used) * left // it.asked) for it in said.cause.uses)
    return left, text


def _together(pod: Manifest, servers: int) -> Manifest:
    """Return a pod that requests as much as so many servers."""

    def times(amounts: Manifest) -> Manifest:
        millis = {it: 1000 * servers * parse_quantity(str(one)) for it, one in amounts.items()}
        return {it: f"{ceil(amount)}m" for it, amount in millis.items()}

    def grown(container: Manifest) -> Manifest:
        its = container.get("resources") or {}
        return {**container, "resources": {it: times(its.get(it) or {}) for it in _AMOUNTS}}

    spec = pod["spec"]
    return {
        **pod,
        "spec": {**spec, **{it: [*map(grown, spec.get(it) or ())] for it in _CONTAINERS}},
    }


_AMOUNTS = ("requests", "limits")
_CONTAINERS = ("containers", "initContainers")
