"""Find out the pod that a choice among profiles gives.

KubeSpawner loads a profile into the spawner itself: it sets traits, merges dictionaries, and calls
the administrator's functions. So this module does it to a copy.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tornado import web

from gpuspawner.compat import kubespawner, pods
from gpuspawner.kube.objects import Manifest
from gpuspawner.kube.quoting import one_line
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.shapes import Frozen, freeze
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.profiles.profile_list import Complete, read
from gpuspawner.profiles.profile_options import Chosen
from gpuspawner.scaling.pools import DeclaredPool
from gpuspawner.scheduling import Rules
from gpuspawner.start.host import Host, within_start_timeout
from gpuspawner.start.pod_builder import home_of, requested


def check(listed: object) -> None:
    """Check the configured profiles, unless they are a function.

    Raises:
        AttributeError, KeyError, TypeError: KubeSpawner couldn't show the profiles either.
        OfferError: A ``scale_up`` isn't usable.
    """
    if not callable(listed):
        read(kubespawner.complete_profiles(None, kubespawner.as_list(listed)))


async def try_out(spawner: Host, listed: Complete, chosen: Chosen, rules: Rules) -> Proposal:
    """Return the proposal for a choice; an unknown pod if KubeSpawner can't make it.

    *spawner* is a copy that nothing else uses. Options without a default are left out unless the
    choice has a value for them.

    Raises:
        HTTPError: An administrator's function forbids the profile, or the profile sets an offer,
            which only the whole hub can set.
    """
    # KubeSpawner finds only this profile, and doesn't call an administrator's function again.
    slug = chosen.profile.slug if chosen.profile else None
    spawner.profile_list = [_without_open(it, chosen) for it in listed if it["slug"] == slug]
    spawner.user_options = dict(chosen.options)
    try:
        async with within_start_timeout(spawner):
            await spawner.load_user_options()
            pod = await spawner.get_pod_manifest()
        proposal = Proposal(
            namespace=spawner.namespace,
            name=spawner.pod_name,
            pod=pods.plain(pod),
            grant=Grant(),
            new_claims=home_of(spawner),
            profile=slug or "",
            owner=spawner.user.id,
        )
    except web.HTTPError:
        raise
    except Exception as error:  # noqa: BLE001, the start makes the pod again, and reports the error
        spawner.log.info("Can't build the pod of %s yet: %r", one_line(spawner.pod_name), error)
        proposal = unknown(spawner)
    grant = requested(proposal.decoded, rules, chosen.slug)
    return replace(proposal, grant=grant, pool=_pool(proposal, chosen, grant))


def _without_open(profile: Mapping[str, Any], chosen: Chosen) -> Mapping[str, Any]:
    """Leave out the options that `Chosen.open` names: KubeSpawner makes no pod without a value."""
    left_out = {option.name for option in chosen.open}
    options = profile.get("profile_options") or {}
    kept = {name: option for name, option in options.items() if name not in left_out}
    return {**profile, "profile_options": kept} if left_out else profile


def unknown(spawner: Host) -> Proposal:
    """Return the proposal of a pod that can't be made yet."""
    return Proposal(spawner.namespace, spawner.pod_name, {"spec": None}, Grant())


def _pool(proposal: Proposal, chosen: Chosen, grant: Grant) -> DeclaredPool | None:
    """The pool of ``scale_up``: the nodes that the pod itself selects.

    A pod that selects nothing would take every node for the pool; then only the autoscaler knows.
    """
    if chosen.scale_up is None or proposal.decoded is None:
        return None
    spec: Any = proposal.pod["spec"]
    selector, terms = spec.get("nodeSelector") or {}, _terms(spec)
    if not selector and not terms:
        return None
    resource = grant.accelerator.resource if grant.accelerator else ""
    return DeclaredPool(chosen.scale_up, selector, terms, resource)


def _terms(spec: Manifest) -> tuple[Frozen, ...]:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return tuple(freeze(term) for term in required.get("nodeSelectorTerms") or ())
