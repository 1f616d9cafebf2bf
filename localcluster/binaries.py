"""The programs that a local cluster runs, built or downloaded once into the cache.

The control plane is one program, built from the Go module in ``go/``; see its ``main.go``.
Karpenter is built from ``go/karpenter``, a module of its own, because it needs other versions of
Kubernetes' modules; and for the same reason, Kueue from ``go/kueue``.
configurable-http-proxy, the proxy of the demo's JupyterHub, comes from npm.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from localcluster import gobuild
from localcluster.cache import key, made_once
from localcluster.errors import LocalClusterError
from localcluster.toolchains import go, node

KUBERNETES_VERSION = "1.36.2"
PROXY = "configurable-http-proxy@5.3.0"

#: The Go version that Karpenter's module requires.
KARPENTER_GO = (1, 26, 6)

_MODULE = Path(__file__).parent / "go"
_KARPENTER = _MODULE / "karpenter"
_KUEUE = _MODULE / "kueue"
_VERSION_PACKAGE = "k8s.io/component-base/version"


def controlplane() -> Path:
    """Return the program that runs etcd, kube-apiserver, ... as its first argument names it.

    Raises:
        LocalClusterError: there is no Go toolchain, or the build failed.
    """
    toolchain = go()
    major, minor, _ = KUBERNETES_VERSION.split(".")
    stamps = {"gitVersion": f"v{KUBERNETES_VERSION}", "gitMajor": major, "gitMinor": minor}

    def make(directory: Path) -> None:
        title = f"Kubernetes {KUBERNETES_VERSION}"
        flags = [f"-X {_VERSION_PACKAGE}.{name}={value}" for name, value in stamps.items()]
        gobuild.build(toolchain, _MODULE, directory / "controlplane", title, flags)

    sources = gobuild.sources(_MODULE)
    return made_once(f"controlplane/{key(toolchain.version, *sources)}", make) / "controlplane"


def karpenter() -> Path:
    """Return the directory that holds ``karpenter``, and in ``crds`` the CRDs of its module.

    Raises:
        LocalClusterError: there is no Go toolchain, or the build failed.
    """
    toolchain = go(KARPENTER_GO)

    def make(directory: Path) -> None:
        gobuild.build(toolchain, _KARPENTER, directory / "karpenter", "Karpenter")
        module = gobuild.module_directory(toolchain, _KARPENTER, "sigs.k8s.io/karpenter")
        (directory / "crds").mkdir()
        for crd in module.glob("**/apis/crds/*.yaml"):
            shutil.copyfile(crd, directory / "crds" / crd.name)

    return made_once(f"karpenter/{key(toolchain.version, *gobuild.sources(_KARPENTER))}", make)


def kueue() -> Path:
    """Return the directory that holds ``kueue``, ``webhooks.yaml``, and in ``crds`` its CRDs.

    Raises:
        LocalClusterError: there is no Go toolchain, or the build failed.
    """
    toolchain = go()

    def make(directory: Path) -> None:
        program = "sigs.k8s.io/kueue/cmd/kueue"
        gobuild.build(toolchain, _KUEUE, directory / "kueue", "Kueue", package=program)
        module = gobuild.module_directory(toolchain, _KUEUE, "sigs.k8s.io/kueue")
        components = module / "config" / "components"
        shutil.copyfile(components / "webhook" / "manifests.yaml", directory / "webhooks.yaml")
        (directory / "crds").mkdir()
        for crd in (components / "crd" / "bases").glob("*.yaml"):
            shutil.copyfile(crd, directory / "crds" / crd.name)

    return made_once(f"kueue/{key(toolchain.version, *gobuild.sources(_KUEUE))}", make)


def proxy() -> Path:
    """Return the directory that holds ``configurable-http-proxy`` and its ``node``.

    Raises:
        LocalClusterError: npm could not install it.
    """
    runtime = node()

    def make(directory: Path) -> None:
        print(f"installing {PROXY} from npm", file=sys.stderr, flush=True)
        options = ["--silent", "--no-fund", "--no-audit", "--prefix", str(directory)]
        command: list[str | Path] = [*runtime.npm, "install", *options, PROXY]
        try:
            subprocess.run(command, check=True, env=runtime.environment())
        except (OSError, subprocess.CalledProcessError) as error:
            raise LocalClusterError(f"npm could not install {PROXY}: {error}") from error
        # So that PATH needs only this directory, with whichever Node the machine has.
        (directory / "node_modules" / ".bin" / "node").symlink_to(runtime.command)

    made = made_once(f"proxy/{key(PROXY, str(runtime.command))}", make)
    return made / "node_modules" / ".bin"
