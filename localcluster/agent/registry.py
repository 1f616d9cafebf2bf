"""Names of images, and the words in which containerd says that one can't be pulled."""

import re

#: ``{name}`` is the complete reference, ``{host}`` its registry, ``{path}`` its repository there,
#: ``{tag}`` its tag. Texts of containerd 1.7 and 2.x as kubelets pass them on; a kubelet leaves out
#: the code of errors that have none (cri-client v0.36.2, pkg/remote_image.go).
ERRORS = {
    "not-found": "rpc error: code = NotFound desc = failed to pull and unpack image "
    '"{name}": failed to resolve reference "{name}": {name}: not found',
    "unauthorized": 'failed to pull and unpack image "{name}": failed to resolve reference '
    '"{name}": pull access denied, repository does not exist or may require authorization: '
    "server message: insufficient_scope: authorization failed",
    "forbidden": 'failed to pull and unpack image "{name}": failed to resolve reference '
    '"{name}": failed to authorize: failed to fetch anonymous token: unexpected status from GET '
    "request to https://{host}/token?scope=repository%3A{path}%3Apull&service={host}: "
    "403 Forbidden",
    "unreachable": "rpc error: code = DeadlineExceeded desc = failed to pull and unpack image "
    '"{name}": failed to resolve reference "{name}": failed to do request: Head '
    '"https://{host}/v2/{path}/manifests/{tag}": dial tcp 192.0.2.7:443: i/o timeout',
    "no-such-host": 'failed to pull and unpack image "{name}": failed to resolve reference '
    '"{name}": failed to do request: Head "https://{host}/v2/{path}/manifests/{tag}": dial tcp: '
    "lookup {host} on 10.96.0.10:53: no such host",
    "rate-limit": 'failed to pull and unpack image "{name}": failed to copy: httpReadSeeker: '
    "failed open: unexpected status code https://{host}/v2/{path}/manifests/{tag}: "
    "429 Too Many Requests - Server message: toomanyrequests: You have reached your "
    "unauthenticated pull rate limit. https://www.docker.com/increase-rate-limit",
    "no-platform": "rpc error: code = NotFound desc = failed to pull and unpack image "
    '"{name}": no match for platform in manifest: not found',
    "no-space": 'failed to pull and unpack image "{name}": failed to extract layer '
    "sha256:0f3b: write /var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/"
    "91/fs/opt/conda/lib/libtorch_cuda.so: no space left on device",
    # CRI-O and the kubelet agreed on this prefix; see `images.pull_error`.
    "registry-unavailable": "RegistryUnavailable: pinging container registry {host}: "
    "503 Service Unavailable",
}
#: An image at ``not-found.localcluster.invalid`` can't be pulled for the reason ``not-found``.
FAULTY_DOMAIN = ".localcluster.invalid"

_DOCKER_HOST, _DOCKER_REGISTRY = "docker.io", "registry-1.docker.io"
_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    r"(?:(?P<host>[A-Za-z0-9.-]+(?::[0-9]+)?)/)??"
    rf"(?P<path>{_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?(?P<digest>@sha256:[0-9a-f]{64})?",
    re.ASCII,
)


def invalid_name(image: str) -> str:
    """Return what a kubelet says of an image name that it can't read; "" if it can.

    pkg/util/parsers/parsers.go (v1.36.2) with distribution/reference v0.6.0.
    """
    if _REFERENCE.fullmatch(image):
        return ""
    _, remote = _split(image.partition("@")[0])
    name = remote.partition(":")[0]
    why = "invalid reference format"
    if name != name.lower():
        why += f": repository name ({name}) must be lowercase"
    return f'couldn\'t parse image name "{image}": {why}'


def fault_of(image: str) -> str:
    """Return the fault that an image's registry has by its name, or ""."""
    host, _ = _split(image)
    return host.removesuffix(FAULTY_DOMAIN) if host.endswith(FAULTY_DOMAIN) else ""


def tagged(image: str) -> str:
    """Return the image with a tag, as a kubelet asks for it."""
    last = image.rpartition("/")[2]
    return image if ":" in last or "@" in last else f"{image}:latest"


def error(fault: str, image: str) -> str:
    """Return containerd's text for a fault.

    Raises:
        KeyError: there is no such fault.
    """
    host, rest = _split(tagged(image))
    path, _, tag = rest.rpartition("@") if "@" in rest else rest.rpartition(":")
    registry = _DOCKER_REGISTRY if host == _DOCKER_HOST else host
    return ERRORS[fault].format(name=f"{host}/{rest}", host=registry, path=path, tag=tag)


def _split(image: str) -> tuple[str, str]:
    """Split off the registry; without one, Docker Hub is meant."""
    first, slash, rest = image.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return first, rest
    return _DOCKER_HOST, image if slash else f"library/{image}"
