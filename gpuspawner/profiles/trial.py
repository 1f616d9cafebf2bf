"""The pod that a choice among profiles would give, found out without touching the spawner.

KubeSpawner loads a profile into the spawner itself: it sets traits, merges into those that are
dictionaries, and calls the functions that an administrator put there. So it loads it here into a
copy, which is thrown away.
"""

import asyncio
import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from jupyterhub.utils import maybe_future
from kubespawner import KubeSpawner
from tornado import web

from gpuspawner import patterns, pods
from gpuspawner.kube.pods import Pod
from gpuspawner.kube.quantity import QuantityError
from gpuspawner.messages import device
from gpuspawner.offers import Accelerator
from gpuspawner.offers.frozen import Frozen, freeze
from gpuspawner.pods import Plain
from gpuspawner.policy import Grant
from gpuspawner.preflight.ask import Ask
from gpuspawner.profiles.choosing import Chosen
from gpuspawner.profiles.reading import Profile, read
from gpuspawner.quoting import one_line
from gpuspawner.scheduling import Rules
from gpuspawner.scheduling.requests import asked, is_extended

Initialized = Sequence[Mapping[str, Any]]
"""Profiles with the slugs and defaults that KubeSpawner gives them."""

Listing = Callable[[], object]
"""Gives the profiles as an administrator has them, or what is to be awaited for them."""


# There is no public way. Looked up here, a name that KubeSpawner has changed ends the hub's start;
# where they are used it would look like a mistake in the profiles.
_sorted_dict_values = KubeSpawner._sorted_dict_values  # noqa: SLF001
_get_initialized_profile_list = KubeSpawner._get_initialized_profile_list  # noqa: SLF001

# The hub's whole configuration, and what KubeSpawner itself copies before it completes it.
_NEVER_CHANGED = frozenset({"config", "profile_list"})


def listing(spawner: Any) -> Listing:
    """The spawner's profiles, for one gate: an administrator's function is called once for them."""

    def called() -> object:
        listed = _sorted_dict_values(spawner, spawner.profile_list)
        return listed(spawner) if callable(listed) else listed

    return cache(called)


async def profile_list(spawner: Any, listing: Listing) -> Initialized:
    """The profiles as KubeSpawner uses them."""
    listed = listing()
    if inspect.isawaitable(listed):
        await asyncio.sleep(0)  # what can be awaited only once, no attempt of `hub.at_once` awaits
    listed = await maybe_future(listed)
    initialized: Initialized = _get_initialized_profile_list(spawner, listed)
    return initialized or []


def check(listed: object) -> None:
    """Check profiles as the configuration has them, where they are no function.

    Raises:
        AttributeError, KeyError, TypeError: KubeSpawner could not show them either.
        re.error: A ``validation_regex`` is no regular expression.
        OfferError: A ``scale_up`` is not usable.
    """
    if callable(listed):
        return
    for profile in read(_get_initialized_profile_list(None, _sorted_dict_values(None, listed))):
        for option in profile.options:
            if option.write_in is not None:
                patterns.check(option.write_in.pattern)


def copy_of(spawner: Any) -> Any:
    """A copy of *spawner* whose traits can be changed without changing those of the original."""
    copied = copy.copy(spawner)
    values = copied._trait_values  # noqa: SLF001, HasTraits gives each copy its own
    for name, value in values.items():
        if isinstance(value, dict | list | set) and name not in _NEVER_CHANGED:
            values[name] = copy.deepcopy(value)
    return copied


async def try_out(spawner: Any, listed: Initialized, chosen: Chosen, rules: Rules) -> Ask:
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
        ask = Ask(
            namespace=spawner.namespace,
            name=spawner.pod_name,
            pod=pods.plain(await spawner.get_pod_manifest()),
            grant=Grant(),
            new_claims=spawner.new_claims(),
        )
    except web.HTTPError:
        raise
    except Exception as error:  # noqa: BLE001, the start makes the pod again, and tells why not
        spawner.log.info("The pod of %s cannot be made yet: %r", one_line(spawner.pod_name), error)
        ask = Ask(spawner.namespace, spawner.pod_name, {"spec": None}, Grant())
    return replace(ask, grant=_grant(ask, chosen.profile, rules))


def _grant(ask: Ask, profile: Profile | None, rules: Rules) -> Grant:
    """What the pod asks for, in the terms of the rest; of its devices the GPUs count first."""
    pod = getattr(ask.subject, "pod", None)
    try:
        amounts = asked(pod, rules) if isinstance(pod, Pod) else {}
    except QuantityError:
        return Grant()
    devices = [name for name, amount in amounts.items() if amount > 0 and is_extended(name)]
    if not devices or profile is None:
        return Grant()
    spec: Any = ask.pod["spec"]
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


def _terms(spec: Plain) -> tuple[Frozen, ...]:
    """The node selector terms that the pod requires."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return tuple(freeze(term) for term in required.get("nodeSelectorTerms") or ())
