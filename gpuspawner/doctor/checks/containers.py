"""Whether servers see the GPUs that they get: on k3s and RKE2 that needs a RuntimeClass."""

from collections.abc import Container, Iterator, Sequence

from gpuspawner.doctor.nodes import names, selected
from gpuspawner.gates.what_if import Tried
from gpuspawner.messages.administrators import Finding, fine, warning
from gpuspawner.offers.discovery import NVIDIA_CLASS, needs_class
from gpuspawner.scheduling import ClusterState


def check(
    state: ClusterState, tried: Sequence[Tried], classes: Container[str]
) -> Iterator[Finding]:
    """Check the class of each server with NVIDIA's GPUs.

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
        advice = (
            f"Set its runtime_class (of a profile, runtime_class_name) to {NVIDIA_CLASS!r} in "
            f"{it.server.place}, or the nodes' --default-runtime."
        )
        if NVIDIA_CLASS not in classes:
            advice = f"Create the RuntimeClass {NVIDIA_CLASS}, or let the hub list runtimeclasses."
        what = f"no container sees a GPU without {NVIDIA_CLASS}"
        text = f"{offer} has no RuntimeClass, and on {on} {what}."
        yield warning("runtime-class", text, advice)
