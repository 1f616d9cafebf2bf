"""Devices that drivers allocate by claims (DRA), beside or instead of device plugins."""

from collections.abc import Collection, Iterator, Sequence

from gpuspawner.gates.what_if import Tried
from gpuspawner.kube.nodes import DeviceClass
from gpuspawner.kube.quoting import listing
from gpuspawner.messages.administrators import Finding, error, fine, warning
from gpuspawner.offers.discovery import gpus
from gpuspawner.scheduling import ClusterState

_CLAIMS, _EXTENDED = 34, 36
"""The minor versions of kube-scheduler that allocate claims, and resources of DeviceClasses."""


def check(
    state: ClusterState, tried: Sequence[Tried], drivers: Collection[tuple[str, str]]
) -> Iterator[Finding]:
    """Check who gives servers their devices; *drivers* are those of claims, each with its node."""
    minor, asked = state.rules.minor, {name for it in tried for name in it.resources}
    claiming = [it.server.name for it in tried if it.pod and it.pod.spec.resource_claims]
    if claiming and minor < _CLAIMS:
        yield error(
            "scheduler-claims",
            f"{listing(claiming)} has resource claims, which the servers' scheduler, "
            f"kube-scheduler 1.{minor}, doesn't allocate: that needs 1.{_CLAIMS}.",
            "Use a newer scheduler (in the chart, scheduling.userScheduler.image.tag).",
        )
    for class_ in state.storage.all(DeviceClass):
        if (served := class_.spec.extended_resource_name) in asked:
            text = f"The DeviceClass {class_.metadata.name} serves {served}, "
            if minor < _EXTENDED:
                text += f"but without a gate, kube-scheduler 1.{minor} uses only device plugins."
                yield warning("device-class", text, "Use a newer scheduler.")
            else:
                yield fine("device-class", f"{text}so gpuspawner can't count all that is free.")
    for name, driver in sorted(drivers):
        node = state.nodes.get(name)
        if node and any(driver.endswith(it.partition("/")[0]) for it in gpus(node)):
            text = f"A device plugin and the driver {driver} both give the GPUs of {name}"
            advice = "Run only one of them on each node."
            yield warning("plugin-and-driver", f"{text}, so two pods may get the same one.", advice)
