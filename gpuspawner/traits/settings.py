"""GPUSpawner's traits as its parts read them, and what they say together."""

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from gpuspawner.cluster.schedulers import Schedulers, read_chart
from gpuspawner.compat import zero_to_jupyterhub
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.vendors import any_gpu
from gpuspawner.scheduling import Rules
from gpuspawner.traits import OFFERS

if TYPE_CHECKING:
    from gpuspawner.line.queue_config import QueueRules
    from gpuspawner.policies.policies import Policies


class Settings(Protocol):
    """GPUSpawner's traits, on a spawner or read from a configuration."""

    log: logging.Logger
    memory_requested: float
    cpu_requested: float
    cpu_environment: dict[str, str]
    keep_cpu_servers_off_accelerators: bool
    autoscaling: str
    autoscaler_status: str
    scheduler_name: str | None
    scheduler_version: str | None
    default_filter_schedulers: list[str]
    k8s_api_host: str
    k8s_api_ssl_ca_cert: str
    k8s_api_verify_ssl: bool | None
    profile_list: Any
    extra_resource_limits: dict[str, Any]
    extra_resource_guarantees: dict[str, Any]
    policies: Any
    gpu_weights: dict[str, Any]
    queue: Any
    gpu_use: Any
    namespace: str
    enable_user_namespaces: bool

    def trait_has_value(self, name: str) -> bool:
        """Whether a trait is set, or its default has been computed."""


def configured_offers(settings: Settings) -> Offers:
    """Read the offers.

    Raises:
        OfferError: They aren't usable.
    """
    return Offers.parse(**{name: getattr(settings, name) for name in OFFERS})


def configured_policies(
    settings: Settings, offers: Offers
) -> "Policies | Callable[..., Any] | None":
    """Read the policies, or return the function that makes them for each server.

    None without any.

    Raises:
        OfferError: They, or the weights of GPUs, aren't usable.
    """
    given = settings.policies
    if not (given or settings.gpu_weights):
        return None
    # Only hubs with policies load them.
    from gpuspawner.policies.policies_config import read_policies, read_weights

    weights = read_weights(settings.gpu_weights)
    if callable(given):
        function: Callable[..., Any] = given
        return function
    return read_policies(given, weights, offers) or None


def configured_queue(
    settings: Settings, offers: Offers, policies: "Policies | Callable[..., Any] | None"
) -> "QueueRules | None":
    """Read the rules of the line; None without one.

    Raises:
        OfferError: They aren't usable.
    """
    if settings.queue is False:
        return None
    from gpuspawner.line.queue_config import read_queue  # only hubs with a line load it

    listed = () if policies is None else None if callable(policies) else policies.policies
    names = None if listed is None else [it.name for it in listed]
    return read_queue(settings.queue, offers, names)


def known_schedulers(settings: Settings) -> Schedulers:
    """What the configuration and the chart's values say about schedulers."""
    of_chart = zero_to_jupyterhub.user_scheduler()
    return Schedulers(
        tuple(settings.default_filter_schedulers), read_chart(*of_chart) if of_chart else None
    )


def scheduler_version(settings: Settings) -> str | None:
    """The version of the servers' scheduler; None if it is the cluster's."""
    if settings.scheduler_version is not None:
        return settings.scheduler_version
    return known_schedulers(settings).version(settings.scheduler_name or "")


def scheduling_rules(settings: Settings) -> Rules | Callable[[str], Rules]:
    """The rules of the servers' scheduler, or what makes them from the cluster's version."""
    rules = partial(Rules.of_version, schedulers=known_schedulers(settings).trusted)
    version = scheduler_version(settings)
    return rules if version is None else rules(version)


def gives_gpus(settings: Settings) -> bool:
    """Whether every server gets GPUs by `KubeSpawner.extra_resource_limits` or guarantees."""
    return any_gpu(settings.extra_resource_limits, settings.extra_resource_guarantees)
