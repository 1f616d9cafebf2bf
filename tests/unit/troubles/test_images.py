"""What the kubelet says of an image; an id names the public thread or version with the text."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.troubles.images import DURATION, Pulled, Pulling, of_pull, read_pull, seconds
from gpuspawner.troubles.trouble import Kind
from tests.unit.makers.trouble_tables import meaning

pytestmark = pytest.mark.each_python


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3m53.352084967s", 233.352084967),
        ("679.368724ms", 0.679368724),
        ("1h0m3s", 3603),
        ("12.5µs", 12.5e-6),  # the sign for micro
        ("12.5μs", 12.5e-6),  # the Greek letter
        ("12us", 12e-6),
        ("7ns", 7e-9),
        ("0s", 0),
    ],
)
def test_each_unit_counts(text, expected):
    assert re.fullmatch(DURATION, text)
    assert seconds(text) == pytest.approx(expected)


@pytest.mark.parametrize("text", ["", "3", "s", "3 s", "-3s", "9" * 400 + "s"])
def test_another_text_is_no_duration(text):
    assert re.fullmatch(DURATION, text) is None


SAID = {
    Pulling("alpine"): {
        "dandi/dandi-hub#89": 'Pulling image "alpine"',
        "1.13": 'pulling image "alpine"',
    },
    Pulled("alpine", seconds=1.466729067, with_waiting=233.352084967): {
        "dandi/dandi-hub#89, 1.27": (
            'Successfully pulled image "alpine" in 1.466729067s (3m53.352084967s including waiting)'
        ),
    },
    Pulled("quay.io/jupyter/base:1", seconds=62.5, with_waiting=63, size=1234567890): {
        "1.30-1.36": (
            'Successfully pulled image "quay.io/jupyter/base:1" in 1m2.5s (1m3s including'
            " waiting). Image size: 1234567890 bytes."
        ),
    },
    Pulled("a", seconds=3603): {"1.20": 'Successfully pulled image "a" in 1h0m3s'},
    Pulled("a"): {
        "1.19": 'Successfully pulled image "a"',
        "no number": 'Successfully pulled image "a" in µs',
    },
    Pulled("jupyterhub/mybinder.org-tc-init:1", was_there=True): {
        "jupyterhub/mybinder.org-deploy#2712": (
            'Container image "jupyterhub/mybinder.org-tc-init:1" already present on machine'
        )
    },
    Pulled("a", was_there=True): {
        "1.34-1.36": (
            'Container image "a" already present on machine and can be accessed by the pod'
        )
    },
    None: {"failed": 'Failed to pull image "a": b'},
}


@pytest.mark.parametrize(("message", "expected"), meaning(SAID))
def test_a_pull_is_read_with_all_its_figures(message, expected):
    assert read_pull(message) == expected


@given(
    st.lists(
        st.sampled_from(['Successfully pulled image "a"', " in ", "1h", "9" * 30, "ms", "("])
        | st.text(max_size=5),
        max_size=8,
    ).map("".join)
)
def test_any_text_is_read(message):
    read_pull(message)


RPC = "rpc error: code = Unknown desc = "
FDB = "foundationdb/fdb-kubernetes-operator:v2.6.0"
SYMPOZIUM = "ghcr.io/alexsjones/sympozium/apiserver:v0.0.29"
CONTROLLER = "registry.k8s.io/ingress-nginx/controller:v1.11.2"
PULLS = {
    Kind.IMAGE_MISSING: {
        "sympozium-ai/sympozium#5": (
            f'Failed to pull image "{SYMPOZIUM}": rpc error: code = NotFound desc = failed to pull'
            f' and unpack image "{SYMPOZIUM}": failed to resolve reference "{SYMPOZIUM}":'
            f" {SYMPOZIUM}: not found"
        ),
        "docker": (
            f'Failed to pull image "a:b": {RPC}Error response from daemon: manifest for a:b not'
            " found: manifest unknown: manifest unknown"
        ),
        "ImagePullBackOff with its cause, 1.32": (
            'Back-off pulling image "a:b": ErrImagePull: rpc error: code = NotFound desc = failed'
            ' to pull and unpack image "a:b": failed to resolve reference "a:b": a:b: not found'
        ),
    },
    Kind.IMAGE_FORBIDDEN: {
        "appscode/charts#1069": (
            f'Failed to pull image "appscode/kubed:v0.13.2": {RPC}failed to pull and unpack image'
            ' "docker.io/appscode/kubed:v0.13.2": failed to resolve reference'
            ' "docker.io/appscode/kubed:v0.13.2": pull access denied, repository does not exist or'
            " may require authorization: server message: insufficient_scope: authorization failed"
        ),
        "containerd": (
            f'Failed to pull image "r.io/a": {RPC}failed to authorize: failed to fetch oauth token:'
            " unexpected status from GET request to https://r.io/token: 401 Unauthorized"
        ),
    },
    Kind.REGISTRY_LIMIT: {
        "kata-containers/kata-containers#10109": (
            f'Failed to pull image "busybox": {RPC}failed to pull and unpack image'
            ' "docker.io/library/busybox:latest": failed to copy: httpReadSeeker: failed open:'
            " unexpected status code https://registry-1.docker.io/v2/library/busybox/manifests/"
            "sha256:50aa: 429 Too Many Requests - Server message: toomanyrequests: You have reached"
            " your pull rate limit. You may increase the limit by authenticating and upgrading:"
            " https://www.docker.com/increase-rate-limit"
        ),
        "kubelet": 'Failed to pull image "a": pull QPS exceeded',
    },
    Kind.REGISTRY_UNREACHABLE: {
        "ciiiii/cloudflare-docker-proxy#85": (
            f'Failed to pull image "{CONTROLLER}": rpc error: code = DeadlineExceeded desc = failed'
            f' to pull and unpack image "{CONTROLLER}": failed to resolve reference "{CONTROLLER}":'
            ' failed to do request: Head "https://us-west2-docker.pkg.dev/v2/k8s-artifacts-prod/'
            'images/ingress-nginx/controller/manifests/v1.11.2": dial tcp 74.125.203.82:443: i/o'
            " timeout"
        ),
        "RegistryUnavailable": "image pull failed for a because the registry is unavailable: down",
        "no address for the token": (
            f'Failed to pull image "a": {RPC}failed to authorize: failed to fetch anonymous token:'
            ' Get "https://auth.docker.io/token": dial tcp: lookup auth.docker.io: no such host'
        ),
    },
    Kind.IMAGE_SIGNATURE: {
        "SignatureValidationFailed": (
            "image pull failed for a because the signature validation failed: no"
        )
    },
    Kind.IMAGE_PLATFORM: {
        "FoundationDB/fdb-kubernetes-operator#2294": (
            f'Failed to pull image "{FDB}": rpc error: code = NotFound desc = failed to pull and'
            f' unpack image "docker.io/{FDB}": no match for platform in manifest: not found'
        ),
        "kube-rbac-proxy/kube-rbac-proxy#79": (
            f'Failed to pull image "quay.io/brancz/kube-rbac-proxy:v0.10.0": {RPC}no matching'
            " manifest for linux/arm64/v8 in the manifest list entries"
        ),
    },
    Kind.DISK_FULL: {
        "tableau/tableau-server-in-kubernetes#14": (
            f'Failed to pull image "CENSORED": {RPC}failed to register layer: Error processing tar'
            " file(exit status 1): write /tableau-server-CENSORED.rpm: no space left on device"
        )
    },
    Kind.IMAGE_NAME: {
        "cri-o, a short name": (
            f'Failed to pull image "python:3": {RPC}short name mode is enforcing, but image name'
            " python:3 returns ambiguous list"
        ),
        "InvalidImageName": (
            'Failed to apply default image tag "A b": couldn\'t parse image name "A b": invalid'
            " reference format"
        ),
    },
    Kind.IMAGE_NEVER_PULLED: {
        "ErrImageNeverPull": 'Container image "a" is not present with pull policy of Never'
    },
    Kind.PULL_FAILED: {
        "containerd/containerd#8173, which isn't about the registry": (
            "failed to pull image: rpc error: code = NotFound desc = failed to pull and unpack"
            ' image "gcr.io/k8s-staging-cri-tools/test-image-latest:latest": failed to prepare'
            ' extraction snapshot "extract-795119289-7389 sha256:9281": parent snapshot sha256:0b16'
            " does not exist: not found"
        ),
        "unknown": "no words of ours",
    },
    Kind.PULL_BACK_OFF: {
        "ErrImagePull": "Error: ErrImagePull",
        "ImagePullBackOff": "Error: ImagePullBackOff",
        "event BackOff": 'Back-off pulling image "quay.io/a:b"',
    },
}


FINAL = (Kind.IMAGE_MISSING, Kind.IMAGE_NAME, Kind.IMAGE_PLATFORM, Kind.IMAGE_SIGNATURE)


@pytest.mark.parametrize(("text", "kind"), meaning(PULLS))
def test_the_text_tells_why_and_only_a_definite_answer_is_final(text, kind):
    fault = of_pull(text)

    assert (fault.kind, fault.is_final) == (kind, kind in FINAL)


def test_the_image_is_named():
    assert of_pull('Failed to pull image "quay.io/a:b": c').about.image == "quay.io/a:b"
    assert of_pull("Error: ErrImagePull", "a").about.image == "a"


@pytest.mark.parametrize("image", ["a", "n", "fest", "m"])
def test_a_short_name_hides_no_reason(image):
    fault = of_pull(f'Failed to pull image "{image}": manifest unknown: manifest unknown')

    assert fault.kind is Kind.IMAGE_MISSING


@pytest.mark.parametrize(
    ("image", "error"),
    [
        ("a", 'Get "https://r.io/v2/forbidden/manifests/429"'),
        ("r.io/forbidden/429:no-such-host", "r.io/forbidden/429:no-such-host"),
    ],
    ids=["an address", "the image's name"],
)
def test_a_name_is_no_reason(image, error):
    text = f'Failed to pull image "{image}": {error}: unexpected'

    assert of_pull(text).kind is Kind.PULL_FAILED
