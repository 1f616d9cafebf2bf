"""What the policies say to one user about one server, and how far each limit is used."""

import msgspec

from gpuspawner.doctor import terminal
from gpuspawner.doctor.application import UsageError
from gpuspawner.doctor.hub import Hub
from gpuspawner.messages.policies import policy_figure
from gpuspawner.messages.words import duration
from gpuspawner.policies.limits import Standing
from gpuspawner.policies.owner import Owner
from gpuspawner.policies.policies import Amount, Per
from gpuspawner.policies.policy_gates import ByPolicies
from gpuspawner.preflight.preflight import START_PATIENCE
from gpuspawner.start.policing import UNCOUNTED
from gpuspawner.start.refusal import Refusal
from gpuspawner.start.source import Choice


class JudgedByPolicies(msgspec.Struct, frozen=True):
    """What the policies say.

    Attributes:
        policies: The names of those that apply to the server.
        standings: What counts toward their limits.
        lifetime: Seconds after which the server would end, if it has a GPU; None for no end.
        uncounted: Why nothing can be counted; "" if it can, or nothing needs it.
        refusal: The hub's refusal; None if the policies allow the server.
    """

    owner: Owner
    policies: tuple[str, ...] = ()
    standings: tuple[Standing, ...] = ()
    lifetime: int | None = None
    uncounted: str = ""
    refusal: Refusal | None = None


async def judge(hub: Hub, choice: Choice) -> JudgedByPolicies:
    """Judge a choice as the hub's gates do.

    Raises:
        UsageError: The administrator's function fails.
    """
    policies = hub.runtime.policies
    if policies is None:
        return JudgedByPolicies(hub.owner)
    policing = ByPolicies(hub.spawner, hub.runtime, policies)
    try:
        applying = await policing.applying(START_PATIENCE)
    except Refusal as failed:
        raise UsageError(failed.details or failed.text) from failed
    uncounted = applying.trouble()
    found = applying.counts(choice.proposal.key).standings()
    try:
        await policing.examine(choice)
        refusal = None
    except Refusal as denied:
        refusal = denied
    return JudgedByPolicies(
        hub.owner,
        tuple(it.name for it in applying.policies),
        () if uncounted else tuple(found),
        applying.lifetime,
        uncounted,
        refusal,
    )


def tell(name: str, judged: JudgedByPolicies) -> None:
    """Print what the policies say."""
    terminal.say(f"{name}: {_headline(judged)}")
    if judged.refusal is not None:
        terminal.say(f"{judged.owner.name} reads: {judged.refusal.text}")
    if judged.policies:
        terminal.say(f"Policies that apply: {', '.join(judged.policies)}.")
    if judged.lifetime is not None:
        terminal.say(f"A server with a GPU ends after {duration(judged.lifetime)}.")
    if judged.standings:
        terminal.say()
        terminal.table(
            ("POLICY", "LIMIT", "OF", "USED", "MOST", "SERVERS"), map(_row, judged.standings)
        )
    terminal.say()


def plain(judged: JudgedByPolicies) -> dict[str, object]:
    """Return the same for programs."""
    return {
        "user": judged.owner.name,
        "server": judged.owner.server,
        "groups": sorted(judged.owner.groups),
        "roles": sorted(judged.owner.roles),
        "applying": list(judged.policies),
        "lifetime": judged.lifetime,
        "limits": [
            {
                "policy": it.policy.name,
                "limit": it.limit.key,
                "group": it.group,
                "used": _number(it.used),
                "most": _number(it.limit.most),
                "servers": list(it.servers),
            }
            for it in judged.standings
        ],
        "uncounted": judged.uncounted,
        "denied": judged.refusal.slug if judged.refusal else "",
        "denied_by": _policy(judged),
    }


def _headline(judged: JudgedByPolicies) -> str:
    user = judged.owner.name
    if judged.refusal is None:
        allows = "the policies allow it" if judged.policies else "no policy applies"
        return f"{allows} to {user}."
    if judged.refusal.slug == UNCOUNTED:
        return f"the hub would start it for {user} only if it could count: {judged.uncounted}."
    return f"the policy {_policy(judged)} denies it to {user}."


def _policy(judged: JudgedByPolicies) -> str:
    """Return the name of the policy that denies the server; "" if none does."""
    refusal = judged.refusal
    return refusal.details if refusal and refusal.slug != UNCOUNTED else ""


def _row(standing: Standing) -> tuple[object, ...]:
    limit = standing.limit
    alone = limit.per is Per.SERVER
    return (
        standing.policy.name,
        limit.key,
        f"group {standing.group}" if standing.group else limit.per,
        "-" if alone else policy_figure(limit.measure, standing.used),
        policy_figure(limit.measure, limit.most),
        ", ".join(name or "(default)" for name in standing.servers),
    )


def _number(amount: Amount) -> int | float:
    return amount if isinstance(amount, int) else float(amount)
