"""Policies that are valid, but can't mean what they say."""

from collections.abc import Iterator

from msgspec.structs import astuple

from gpuspawner.doctor.hub import Hub
from gpuspawner.gates.what_if import Tried
from gpuspawner.kube.objects import UNDECODABLE, strict_convert
from gpuspawner.kube.quoting import count, did_you_mean
from gpuspawner.kube.servers import ServerPod
from gpuspawner.messages.administrators import Finding, fine, warning
from gpuspawner.messages.policies import policy_figure
from gpuspawner.policies.charges import Charge
from gpuspawner.policies.limits import Wanted, names, withheld
from gpuspawner.policies.owner import Names
from gpuspawner.policies.policies import Amount, Limit, Per, Policies, Policy, names_resource
from gpuspawner.start.request_options import PROFILE


def check(hub: Hub) -> Iterator[Finding]:
    """Check what the policies say alone."""
    given = hub.policies
    if not isinstance(given, Policies):
        yield fine(
            "policies",
            "GPUSpawner.policies is a function. The doctor doesn't call it.",
            "Try it with gpuspawner explain --user NAME.",
        )
        return
    for policy in given.policies:
        place = _place(policy)
        if _applies_to_nothing(policy):
            yield warning(
                "policy-nobody",
                f"{place} applies to no server, because its 'except' takes out all of them.",
                "Correct 'except', or remove the policy.",
            )
        if _allows_everything(policy):
            yield warning(
                "policy-nothing",
                f"{place} denies nothing: it has no limit, no lifetime, and no list of what is on "
                "offer.",
                "Add what it should deny, or remove it.",
            )
        if _shares_with_any_group(policy):
            yield warning(
                "policy-groups",
                f"{place}.groups matches any group. So each group has a share of its own, a server "
                "counts in all groups of its owner, and users without a group aren't limited.",
                "Name the groups that have a share. If you mean each user, use keys that end with "
                "_per_user, without 'groups'.",
            )


def check_offers(hub: Hub, tried: list[Tried]) -> Iterator[Finding]:
    """Check what the policies say about the offers."""
    if not isinstance(hub.policies, Policies):
        return
    for policy in hub.policies.policies:
        yield from _unknown(hub, policy, tried)
        yield from _too_small(hub, policy, tried)
    if hub.policies:
        number = count(len(hub.policies.policies), "policy", "policies")
        yield fine("policies", f"The hub has {number}.")


def _place(policy: Policy) -> str:
    return f"GPUSpawner.policies[{policy.name!r}]"


def _applies_to_nothing(policy: Policy) -> bool:
    if _is_any(policy.excepted.users) or _is_any(policy.excepted_servers):
        return True
    if policy.servers is not None and _is_within(policy.servers, policy.excepted_servers):
        return True
    within = map(_is_within, astuple(policy.people), astuple(policy.excepted))
    return bool(policy.people) and all(within)  # of users, groups and roles


def _is_within(names: Names, others: Names) -> bool:
    """Whether each name is among the others, whatever names there are."""
    if _is_any(others):
        return True
    return all(it in others for it in names.plain) and set(names.patterns) <= set(others.patterns)


def _is_any(names: Names) -> bool:
    """Whether each name is among these."""
    return any(not it.strip("*") for it in names.patterns)


def _allows_everything(policy: Policy) -> bool:
    lists = (policy.accelerators, policy.profiles, policy.images)
    ends = policy.lifetime is not None or policy.idle is not None
    return not policy.limits and not ends and all(it is None for it in lists)


def _shares_with_any_group(policy: Policy) -> bool:
    return _is_any(policy.people.groups) and any(it.per is Per.GROUP for it in policy.limits)


def _unknown(hub: Hub, policy: Policy, tried: list[Tried]) -> Iterator[Finding]:
    """Find keys of nothing on offer. If they are configured, the hub itself finds accelerators."""
    has_profiles = hub.spawner.gpuspawner_gates.sources.accelerators is None
    if not (has_profiles and callable(hub.spawner.profile_list)):
        slugs = {str(slug) for it in tried if (slug := it.server.options.get(PROFILE))}
        yield from _missing(policy, "profiles", policy.profiles, slugs)
    if not hub.runtime.discovers:
        return
    known = set(hub.runtime.offers.accelerators)
    if not has_profiles:
        yield from _missing(policy, "accelerators", policy.accelerators, known)
    for limit in policy.limits:  # which count the pods of profiles by their labels
        if not names_resource(limit.measure.of):
            named = frozenset(filter(None, [limit.measure.of]))
            yield from _missing(policy, limit.key, named, known)


def _missing(
    policy: Policy, key: str, names: frozenset[str] | None, known: set[str]
) -> Iterator[Finding]:
    what, its_key = "accelerator that the hub has discovered", "key of an accelerator"
    if key == "profiles":
        what, its_key = "profile", "slug of a profile"
    there = ", ".join(sorted(known)) or "there is none"
    for name in sorted((names or frozenset()) - known):
        yield warning(
            "policy-unknown",
            f"{_place(policy)}.{key} names {name!r}, which is no {what}"
            f"{did_you_mean(name, known)}.",
            f"Write the {its_key}: {there}.",
        )


def _too_small(hub: Hub, policy: Policy, tried: list[Tried]) -> Iterator[Finding]:
    """Find limits that no server can keep, though the policy leaves it on offer.

    A limit may keep a few users from large offers. So it is a mistake only if it allows none of
    what it counts, or not what the policy names.
    """
    taken = [(it, charge) for it in tried if (charge := _charge(hub, it)) is not None]
    left = [(it, charge) for it, charge in taken if not any(withheld([policy], _wanted(it)))]
    for limit in policy.limits:
        least = _least(left, limit)
        too_large = {offer: asked for offer, asked in least.items() if asked > limit.most}
        if len(too_large) < len(least):
            named = {it.server.offer for it, _ in left if _names(policy, it)}
            too_large = {offer: it for offer, it in too_large.items() if offer in named}
        if limit.most > 0 and too_large:
            yield _never(policy, limit, too_large)


def _least(taken: list[tuple[Tried, Charge]], limit: Limit) -> dict[str, Amount]:
    """Return what a server of each offer takes at least, if the limit counts it at all."""
    least: dict[str, Amount] = {}
    for it, charge in taken:
        asked = charge.of(limit.measure)
        least[it.server.offer] = min(asked, least.get(it.server.offer, asked))
    return {offer: asked for offer, asked in least.items() if asked > 0}


def _names(policy: Policy, tried: Tried) -> bool:
    wanted = _wanted(tried)
    return wanted.profile in (policy.profiles or ()) or (
        wanted.accelerator is not None and names(policy.accelerators or (), wanted.accelerator)
    )


def _never(policy: Policy, limit: Limit, too_large: dict[str, Amount]) -> Finding:
    def figure(amount: Amount) -> str:
        return policy_figure(limit.measure, amount)

    takes = " and ".join(f"{it} takes at least {figure(n)}" for it, n in too_large.items())
    return warning(
        "policy-too-small",
        f"{_place(policy)}.{limit.key} is {figure(limit.most)}, but {takes}, so the policy never "
        "allows it.",
        f"Raise it to {figure(min(too_large.values()))} or offer smaller servers. If the policy "
        "should deny this, list what it leaves in its key 'accelerators' or 'profiles'.",
    )


def _charge(hub: Hub, tried: Tried) -> Charge | None:
    """Return what a server takes of limits; None if nobody knows."""
    if tried.proposal is None or hub.written is None:
        return None
    try:
        pod = strict_convert(tried.proposal.pod, ServerPod)
        server = Charge(frozenset(), accelerator=_wanted(tried).accelerator or "")
        return hub.written.meter().charge(pod, server)
    except UNDECODABLE:
        return None


def _wanted(tried: Tried) -> Wanted:
    """Return what the server has of the offers; its image is only one of several."""
    accelerator = tried.proposal.grant.accelerator if tried.proposal else None
    profile = tried.server.options.get(PROFILE)
    return Wanted(
        accelerator=accelerator.key if accelerator else None,
        profile=str(profile) if profile else None,
    )
