"""Pods like those of servers, which the hub tries when it starts; nobody starts them.

From them it learns whether admission changes such pods (see `gpuspawner.preflight.admitted`). So it
can refuse a server for lack of GPUs at once, from its first minute on.
"""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from gpuspawner.compat import kubespawner, pods, sample_pod
from gpuspawner.kube.pods import Pod
from gpuspawner.offers import manifest
from gpuspawner.offers.grant import Grant, decide
from gpuspawner.offers.manifest import ManifestError
from gpuspawner.offers.parsing import GPURequest
from gpuspawner.preflight.proposal import Proposal
from gpuspawner.profiles.requested import requested
from gpuspawner.runtime import Runtime

log = logging.getLogger(__name__)

_PERSON = "gpuspawner"
"""Who makes the dry runs: they take turns among themselves, and none from users."""


async def try_all(runtime: Runtime, settings: Any) -> frozenset[str]:
    """Try one pod of each accelerator, or of each profile. Never raises.

    Return the schedulers that the pods name after admission.

    A hub that gives each user a namespace has none yet to try them in.
    """
    if settings.enable_user_namespaces:
        return frozenset()
    admission, preflight = runtime.dry_runs.for_start(_PERSON), runtime.preflight
    try:
        tried: list[asyncio.Task[Pod | None]] = []
        async with asyncio.TaskGroup() as trying:
            for sample in samples(runtime, settings):
                tried.append(trying.create_task(preflight.try_sample(sample, admission)))
                await asyncio.sleep(0)  # making and judging one takes a millisecond or two
        return frozenset(pod.spec.scheduler_name for it in tried if (pod := it.result()))
    except Exception as error:  # noqa: BLE001, the first refusals just make their own dry runs
        log.info("No sample of a server's pod was tried: %r", error)
        return frozenset()


def samples(runtime: Runtime, settings: Any) -> Iterator[Proposal]:
    """Yield the pods; none of what can't be made without a user."""
    offers = runtime.offers
    rules = runtime.pod_rules(offers)
    for accelerator in offers.accelerators.values():
        least = min(offers.choices(accelerator).counts)
        grant = decide(GPURequest(accelerator=accelerator.key, gpus=least), offers)
        if isinstance(grant, Grant):
            with suppress(ManifestError):  # the first start says so
                pod = manifest.apply(_pod(settings, {}), grant, rules)
                yield Proposal(settings.namespace, _PERSON, pod, grant)
    for slug, override in _overrides(settings.profile_list):
        sample = Proposal(settings.namespace, _PERSON, _pod(settings, override), Grant())
        grant = requested(sample.decoded, runtime.view.state.rules, slug)
        yield replace(sample, grant=grant)


def _pod(settings: Any, override: Mapping[str, Any]) -> dict[str, Any]:
    return pods.plain(sample_pod.make(settings, override))


def _overrides(given: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each profile's slug, and what it changes."""
    profiles = kubespawner.as_list(given)
    if callable(profiles):
        return
    for profile in kubespawner.complete_profiles(None, profiles):
        yield profile["slug"], profile.get("kubespawner_override") or {}
