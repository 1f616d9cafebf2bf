"""The names of container images, as pods and nodes write them."""

from functools import lru_cache

_DOCKER = "docker.io"


@lru_cache(maxsize=8192)  # thousands of nodes list the same names
def canonical(reference: str) -> str:
    """Return an image's name with its registry, and with its digest or else its tag.

    kube-scheduler adds only the tag (`normalizedImageName` in
    ``pkg/scheduler/framework/plugins/imagelocality/image_locality.go``), so short names escape it.
    Container runtimes complete these (`ParseNormalizedNamed` of distribution/reference), and list a
    digest without the tag.
    """
    name, _, digest = reference.partition("@")
    registry, slash, path = name.partition("/")
    if not slash or not _is_registry(registry):
        registry, path = _DOCKER, name
    if registry == f"index.{_DOCKER}":
        registry = _DOCKER
    if registry == _DOCKER and "/" not in path:
        path = f"library/{path}"
    repository, _, tag = path.partition(":")
    if digest:
        return f"{registry}/{repository}@{digest}"
    return f"{registry}/{repository}:{tag or 'latest'}"


def may_be_outdated(reference: str, pull_policy: str | None) -> bool:
    """Whether the kubelet asks the registry for a newer image, even if the node has one.

    Without a policy, the API server sets ``Always`` for the tag ``latest``.
    """
    return pull_policy == "Always" if pull_policy else canonical(reference).endswith(":latest")


def _is_registry(first: str) -> bool:
    return "." in first or ":" in first or first == "localhost" or first != first.lower()
