"""Whether nodes give the GPUs that they have: by device plugins, by claims, and to containers."""

from collections.abc import Collection, Container, Iterator, Mapping, Sequence

from gpuspawner.doctor.nodes import names, selected
from gpuspawner.gates.what_if import Tried
from gpuspawner.kube.nodes import DeviceClass
from gpuspawner.kube.quoting import count, listing
from gpuspawner.messages.administrators import Finding, error, fine, warning
from gpuspawner.offers.discovery import NVIDIA_CLASS, gpus, needs_class
from gpuspawner.offers.options import ACCELERATOR
from gpuspawner.offers.vendors import GPU_LABELS
from gpuspawner.scheduling import ClusterState, NodeInfo
from gpuspawner.scheduling.device_claims import may_serve

Ill = Mapping[str, Sequence[NodeInfo]]
"""The nodes whose label (``key=value``) says that they have GPUs, but that have none to give."""


def ill(state: ClusterState) -> Ill:
    """Find the nodes without GPUs whose labels promise some."""
    found: dict[str, list[NodeInfo]] = {}
    for node in state.nodes.values():
        label = next((label for label in GPU_LABELS if node.labels.get(label)), None)
        if label and node.labels[label] != "false" and not any(gpus(node)):
            found.setdefault(f"{label}={node.labels[label]}", []).append(node)
    return dict(sorted(found.items()))


def check(found: Ill, state: ClusterState, tried: Sequence[Tried]) -> Iterator[Finding]:
    """Check the nodes' devices."""
    for label, nodes in found.items():
        smallest = [it for it in tried if it.server.smallest]
        hit = dict.fromkeys(
            it.server.offer for it in smallest if is_all_of(state, it, {label: nodes})
        )
        so = f", so nobody can start {' or '.join(hit)}" if hit else ""
        make = error if hit else warning
        yield make(
            "no-gpus-on-node",
            f"The label {label} says that {count(len(nodes))} ({names(nodes)}) should have GPUs, "
            f"but none is reported{so}.",
            "Check the GPU driver and the device plugin on them: "
            "kubectl get pods --all-namespaces --field-selector spec.nodeName=NODE.",
        )
    for resource, nodes in sorted(_unhealthy(state).items()):
        lost = sum(it.capacity[resource] - it.allocatable.get(resource, 0) for it in nodes)
        yield warning(
            "unhealthy-gpus",
            f"The device plugin reports unhealthy GPUs: {lost} × {resource} on "
            f"{count(len(nodes))} ({names(nodes)}).",
            "Look at the log of the device plugin on the node, and restart it or the node.",
        )


def is_all_of(state: ClusterState, tried: Tried, found: Ill) -> bool:
    """Whether the server selects nodes, and all of them are ill.

    If a DeviceClass serves its resource, they needn't be: nodes don't report what drivers serve.
    """
    nodes = selected(state, tried)
    sick = {node.name for its in found.values() for node in its}
    accelerator = tried.proposal.grant.accelerator if tried.proposal else None
    if accelerator is None or not nodes:
        return False
    is_served = state.known("DeviceClass") and may_serve(state, accelerator.resource)
    return not is_served and all(node.name in sick for node in nodes)


def _unhealthy(state: ClusterState) -> dict[str, list[NodeInfo]]:
    found: dict[str, list[NodeInfo]] = {}
    for node in state.nodes.values():
        for resource in gpus(node):
            if node.capacity.get(resource, 0) > node.allocatable.get(resource, 0):
                found.setdefault(resource, []).append(node)
    return found


_CLAIMS, _EXTENDED = 34, 36
"""The minor versions of kube-scheduler that allocate claims, and resources of DeviceClasses."""


def check_claims(
    state: ClusterState, tried: Sequence[Tried], drivers: Collection[tuple[str, str]]
) -> Iterator[Finding]:
    """Check devices that drivers allocate by claims (DRA); *drivers* has each with its node."""
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


def check_containers(
    state: ClusterState, tried: Sequence[Tried], classes: Container[str]
) -> Iterator[Finding]:
    """Check that servers see their GPUs: on k3s and RKE2, that needs a RuntimeClass.

    Args:
        state: That of the cluster.
        tried: Servers, the smallest of each offer among them.
        classes: The RuntimeClasses that the cluster has.
    """
    for it in tried:
        nodes = [node for node in selected(state, it) if needs_class(it.resources, [node])]
        if not nodes or not it.server.smallest:
            continue
        on, offer = f"k3s or RKE2 ({names(nodes)})", it.server.offer
        if it.runtime_class:
            text = f"{offer} has the RuntimeClass by which containers see the GPUs of {on}."
            yield fine("runtime-class", text)
            continue
        setting = f"its runtime_class to {NVIDIA_CLASS!r}"
        if ACCELERATOR not in it.server.options:  # KubeSpawner has no trait for it
            setting = f"extra_pod_config: {{'runtimeClassName': {NVIDIA_CLASS!r}}}"
        advice = f"Set {setting} in {it.server.place}, or the nodes' --default-runtime."
        if NVIDIA_CLASS not in classes:
            advice = f"Create the RuntimeClass {NVIDIA_CLASS}, or let the hub list runtimeclasses."
        what = f"no container sees a GPU without {NVIDIA_CLASS}"
        text = f"{offer} has no RuntimeClass, and on {on} {what}."
        yield warning("runtime-class", text, advice)
