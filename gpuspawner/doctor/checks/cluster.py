"""Whether the hub reads the cluster, and knows the rules of its scheduler."""

import asyncio
from collections.abc import Iterator

from gpuspawner.cluster.health import Forbidden, Health, Live
from gpuspawner.cluster.health_log import explain_health
from gpuspawner.cluster.retries import Backoff
from gpuspawner.cluster.schedulers import UnknownScheduler
from gpuspawner.cluster.view import server_version
from gpuspawner.doctor.hub import Hub
from gpuspawner.gates.what_if import Tried
from gpuspawner.kube.quoting import count
from gpuspawner.messages.administrators import (
    Finding,
    error,
    explain_scheduler,
    find_unknown_schedulers,
    fine,
    warning,
)
from gpuspawner.scheduling.rules import DEFAULT_SCHEDULER, NEWEST_MINOR, minor_version
from gpuspawner.traits.settings import known_schedulers, scheduler_version

UNREACHABLE = "cluster"
_PATIENCE = 10.0


def check(health: Health) -> Iterator[Finding]:
    """Check that the hub can read the cluster; `rights` says what is forbidden."""
    if not isinstance(health, Live | Forbidden):
        advice = "Check KUBECONFIG or the service account, and KubeSpawner.k8s_api_host."
        yield error(UNREACHABLE, explain_health(health), advice)


async def check_version(hub: Hub) -> Finding:
    """Check that the rules of the scheduler's version are known."""
    given = hub.spawner.scheduler_version
    try:
        async with asyncio.timeout(_PATIENCE):
            server = await server_version(hub.runtime.client, Backoff(), lambda _: None)
    except TimeoutError:
        server = ""
    if given and minor_version(given) is None:
        return warning(
            "scheduler-version",
            f"GPUSpawner.scheduler_version is {given!r}, which isn't a version, so the rules of "
            f"1.{NEWEST_MINOR} apply.",
            "Write a version such as '1.36', or leave the trait out: the hub asks the API server.",
        )
    version = scheduler_version(hub.spawner) or server
    if (minor_version(version) or 0) > NEWEST_MINOR:
        return warning(
            "scheduler-version",
            f"The scheduler's version, {version}, is newer than the newest rules that gpuspawner "
            f"knows, those of 1.{NEWEST_MINOR}.",
            "Look for a newer version of gpuspawner, or try GPUSpawner.preflight = 'warn' first.",
        )
    nodes, pods = count(len(hub.state.nodes)), len(hub.state.pods)
    text = f"Kubernetes {server or 'of an unknown version'} has {nodes}; pods there: {pods}."
    ours, theirs = minor_version(version), minor_version(server)
    if given or not ours or not theirs or 0 <= theirs - ours <= 1:
        return fine("cluster", text)
    text += (
        f" The image of the user-scheduler is kube-scheduler {version}; Kubernetes supports only "
        "the API server's minor version and the one below."
    )
    return fine("cluster", text, "Set scheduling.userScheduler.image.tag.")


def check_schedulers(hub: Hub, tried: list[Tried]) -> Iterator[Finding]:
    """Check that gpuspawner knows the rules of each scheduler that places servers."""
    judged = known_schedulers(hub.spawner).judge(sorted({_scheduler(hub, it) for it in tried}))
    yield from find_unknown_schedulers(judged)
    for it in judged:
        if not isinstance(it, UnknownScheduler):
            yield fine("scheduler", f"Scheduler: {explain_scheduler(it)}.")


def _scheduler(hub: Hub, tried: Tried) -> str:
    named = tried.pod.spec.scheduler_name if tried.pod else hub.spawner.scheduler_name
    return named or DEFAULT_SCHEDULER
