"""Which images the nodes have on which a pod fits, so that it needs no download there.

No verdict depends on it: kube-scheduler prefers such a node, but may choose another one.
"""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from gpuspawner.kube.images import may_be_outdated
from gpuspawner.kube.objects import Manifest
from gpuspawner.scheduling.node_images import NodeImages

_K = TypeVar("_K")


def containers(pod: Manifest) -> Iterator[Mapping[str, Any]]:
    """Yield the containers of a pod as plain data, its server's first."""
    spec = pod.get("spec")
    if isinstance(spec, Mapping):
        yield from spec.get("containers") or ()
        yield from spec.get("initContainers") or ()


def is_settled(container: Mapping[str, Any]) -> bool:
    """Whether a container runs with the image that its node has; else the kubelet may download."""
    image = container.get("image")
    return bool(image) and not may_be_outdated(str(image), container.get("imagePullPolicy"))


def settled_images(pod: Manifest) -> tuple[str, ...]:
    """Return the images of a pod's containers; none if one of them isn't settled."""
    found = tuple(containers(pod))
    return tuple(str(it["image"]) for it in found) if all(map(is_settled, found)) else ()


Search = Callable[[Container[str]], Iterator[str]]
"""Finds the nodes on which a pod fits, besides those given."""


def on_all(
    images: NodeImages, wanted: Mapping[_K, Sequence[str]], fitting: Search
) -> frozenset[_K]:
    """Return the keys whose wanted images are on each node on which the pod fits; none without one.

    A key that wants no image is left out. There may be thousands of nodes, so the search is only
    among those that lack an image.
    """
    places = {key: images.nodes(*needs) for key, needs in wanted.items() if needs}
    left = {key for key, place in places.items() if place}
    if left and next(fitting(()), None) is None:
        return frozenset()
    while left:
        common = images.nodes(*sorted({name for key in left for name in wanted[key]}))
        lacking = next(fitting(common), None)
        if lacking is None:
            break
        left = {key for key in left if lacking in places[key]}
    return frozenset(left)
