"""What the doctor checks; each module has one concern, and its sentences."""

from collections.abc import Iterator

from msgspec.structs import replace
from traitlets.config import Config

from gpuspawner.cluster.health import Live
from gpuspawner.cluster.unwatched_objects import claim_drivers, runtime_classes
from gpuspawner.compat import required_names
from gpuspawner.compat.required_names import IncompatibleError
from gpuspawner.doctor.checks import (
    cluster,
    devices,
    offers,
    policies,
    queues,
    rights,
    settings,
    storage,
)
from gpuspawner.doctor.hub import Hub, NoAdmission, NoSpawnerError, watching
from gpuspawner.doctor.offered_servers import listed
from gpuspawner.gates.what_if import NOBODY, Tried, UnusableError, try_out
from gpuspawner.messages.administrators import Finding, error
from gpuspawner.policies.owner import Owner


async def examine(config: Config, owner: Owner = NOBODY) -> list[Finding]:
    """Return everything that the doctor finds; a function lists the profiles of *owner*.

    Raises:
        ConfigurationError, OfferError: The configuration would stop the hub.
    """
    try:
        required_names.check()
    except IncompatibleError as failed:
        advice = "Install versions of JupyterHub and KubeSpawner that this version supports."
        return [error("versions", str(failed), advice)]
    try:
        async with watching(config, owner) as hub:
            return await _examined(hub)
    except NoSpawnerError as failed:
        return [settings.without_spawner(owner, failed)]


async def _examined(hub: Hub) -> list[Finding]:
    found = [
        *settings.check(hub),
        *settings.check_names(hub),
        *await settings.check_slips(hub),
        *policies.check(hub),
        *settings.check_limits(hub),
        *await settings.check_use(hub),
        *cluster.check(hub.view.health()),
    ]
    if any(finding.id == cluster.UNREACHABLE for finding in found):
        return found
    found += await rights.check(hub)
    if not isinstance(hub.view.health(), Live):
        return found
    found.append(await cluster.check_version(hub))
    forbidden = any(finding.id == rights.NO_SERVERS for finding in found)
    asked = replace(hub, admission=NoAdmission()) if forbidden else hub
    try:
        tried, failing = [await try_out(asked, it) for it in await listed(asked)], None
    except UnusableError as failed:
        tried, failing = [], settings.without_servers(hub, failed)
    client = hub.runtime.client
    found += devices.check_claims(hub.state, tried, await claim_drivers(client))
    found += devices.check_containers(hub.state, tried, await runtime_classes(client))
    return [*found, *_about(hub, tried, failing)]


def _about(hub: Hub, tried: list[Tried], failing: Finding | None) -> Iterator[Finding]:
    """Check the cluster, and the servers unless nobody can tell them, because of *failing*."""
    yield from cluster.check_schedulers(hub, tried)
    yield from settings.check_disruption(hub, tried)
    yield from storage.check(hub.state, tried)
    yield from storage.check_places(hub.state, tried)
    yield from queues.check(hub)
    ill = devices.ill(hub.state)
    yield from devices.check(ill, hub.state, tried)
    if failing is not None:
        yield failing
        return
    yield from offers.check(hub, tried, ill)
    yield from policies.check_offers(hub, tried)
