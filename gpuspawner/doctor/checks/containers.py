"""Whether servers see the GPUs that they get: on k3s and RKE2 that needs a RuntimeClass."""

from collections.abc import Container, Iterator, Sequence

from gpuspawner.doctor.nodes import names, selected
from gpuspawner.doctor.servers import Tried
from gpuspawner.kube.quoting import listing
from gpuspawner.messages.administrators import Finding, fine, warning
from gpuspawner.offers.runtime_class import NAME, needed
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
    needing = [
        (it, nodes)
        for it in tried
        if it.server.smallest
        and (nodes := [node for node in selected(state, it) if needed(it.resources, [node])])
    ]
    bare = [it for it, _ in needing if not it.runtime_class]
    on = names({node.name: node for _, its in needing for node in its}.values())
    if not needing:
        return
    if not bare:
        text = f"Servers on the nodes of k3s or RKE2 ({on}) have a RuntimeClass, so they see GPUs."
        yield fine("runtime-class", text)
        return
    places = " and ".join(dict.fromkeys(it.server.place for it in bare))
    yield warning(
        "runtime-class",
        f"Nodes of k3s or RKE2 ({on}) give containers no GPU without the RuntimeClass {NAME}, and "
        f"{listing([it.server.offer for it in bare])} has none.",
        f"Set 'runtime_class': {NAME!r} in {places} (for profiles, runtime_class_name), or the "
        f"nodes' --default-runtime={NAME}."
        if NAME in classes
        else f"Create the RuntimeClass {NAME}, or if the cluster has it, let the hub list "
        "runtimeclasses.",
    )
