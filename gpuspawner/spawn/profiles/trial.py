"""The pod that a choice among profiles would give, found out without touching the spawner.

KubeSpawner loads a profile into the spawner itself: it sets traits, merges into those that are
dictionaries, and calls the functions that an administrator put there. So it loads it here into a
copy, which is thrown away.
"""

from dataclasses import replace
from typing import Any

from tornado import web

from gpuspawner import patterns, pods
from gpuspawner.compat import kubespawner
from gpuspawner.kube.manifest import Manifest
from gpuspawner.kube.pods import Pod
from gpuspawner.kube.quantity import QuantityError
from gpuspawner.messages import device
from gpuspawner.offers import Accelerator
from gpuspawner.offers.frozen import Frozen, freeze
from gpuspawner.policy import Grant
from gpuspawner.preflight.proposal import Proposal
from gpuspawner.quoting import one_line
from gpuspawner.scheduling import Rules
from gpuspawner.scheduling.requests import is_extended, pod_requests
from gpuspawner.spawn.host import Host
from gpuspawner.spawn.pod_builder import home_of
from gpuspawner.spawn.profiles.choosing import Chosen
from gpuspawner.spawn.profiles.profile_list import Complete, Profile, read


def check(listed: object) -> None:
    """Check profiles as the configuration has them, unless they are a function.

    Raises:
        AttributeError, KeyError, TypeError: KubeSpawner could not show them either.
        re.error: A ``validation_regex`` is no regular expression.
        OfferError: A ``scale_up`` is not usable.
    """
    if callable(listed):
        return
    for profile in read(kubespawner.complete_profiles(None, kubespawner.as_list(listed))):
        for option in profile.options:
            if option.write_in is not None:
                patterns.check(option.write_in.pattern)


async def try_out(spawner: Host, listed: Complete, chosen: Chosen, rules: Rules) -> Proposal:
    """What would be asked of the cluster for a choice; where its pod cannot be made, nothing known.

    Args:
        spawner: A copy that nobody else uses; it has loaded the profile afterwards.
        listed: The profiles.
        chosen: The choice.
        rules: How kube-scheduler counts what a pod asks for.

    Raises:
        HTTPError: The profile sets what is for the whole hub only, or an administrator's function
            says that this person may not have it.
    """
    # One profile is all there is to find, and a function is not called once more.
    slug = chosen.profile.slug if chosen.profile else None
    spawner.profile_list = [it for it in listed if it["slug"] == slug]
    spawner.user_options = dict(chosen.options)
    try:
        await spawner.load_user_options()
        proposal = Proposal(
            namespace=spawner.namespace,
            name=spawner.pod_name,
            pod=pods.plain(await spawner.get_pod_manifest()),
            grant=Grant(),
            new_claims=home_of(spawner),
        )
    except web.HTTPError:
        raise
    except Exception as error:  # noqa: BLE001, the start makes the pod again, and tells why not
        spawner.log.info("The pod of %s cannot be made yet: %r", one_line(spawner.pod_name), error)
        proposal = unknown(spawner)
    return replace(proposal, grant=_grant(proposal, chosen.profile, rules))


def unknown(spawner: Host) -> Proposal:
    """The proposal of a pod that can't be made yet."""
    return Proposal(spawner.namespace, spawner.pod_name, {"spec": None}, Grant())


def _grant(proposal: Proposal, profile: Profile | None, rules: Rules) -> Grant:
    """What the pod asks for, in the terms of the rest; of its devices the GPUs count first."""
    pod = getattr(proposal.subject, "pod", None)
    try:
        amounts = pod_requests(pod, rules) if isinstance(pod, Pod) else {}
    except QuantityError:
        return Grant()
    devices = [name for name, amount in amounts.items() if amount > 0 and is_extended(name)]
    if not devices or profile is None:
        return Grant()
    spec: Any = proposal.pod["spec"]
    resource = min(devices, key=lambda name: ("gpu" not in name, name))
    count = amounts[resource]
    accelerator = Accelerator(
        key=profile.slug,
        display_name=device(resource),
        resource=resource,
        counts=(count,),
        node_selector=spec.get("nodeSelector") or {},
        node_affinity=_terms(spec),
        scale_up=profile.scale_up,
    )
    return Grant(accelerator, count)


def _terms(spec: Manifest) -> tuple[Frozen, ...]:
    """The node selector terms that the pod requires."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return tuple(freeze(term) for term in required.get("nodeSelectorTerms") or ())
