"""Reads why a container isn't created or started, in the words of runc, containerd and NVIDIA."""

import re

from gpuspawner.launch.config_faults import of_config
from gpuspawner.launch.phrases import Phrases
from gpuspawner.launch.trouble import About, Fault, Kind

_PHRASES = Phrases(
    {
        Kind.OUT_OF_MEMORY: (r"OOM-killed", r"oom_kill", r"out of memory"),
        Kind.IMAGE_PLATFORM: (r"exec format error",),
        Kind.GPU_DRIVER: (
            r"nvidia-container-(?:cli|runtime)",
            r"nvidia-ctk",
            r"unresolvable CDI devices",
            r"CDI device injection failed",
            r"\bnvml\b",
        ),
        Kind.NO_SUCH_PROGRAM: (
            r"executable file not found",
            r"exec(?:ing)?:? .{0,999}(?:no such file or directory|permission denied)",
            r"exec(?:ing)?:? .{0,999}(?:is|not) a directory",
            r"no command specified",
        ),
        Kind.DISK_FULL: (r"no space left on device", r"disk quota exceeded"),
        Kind.DEVICE_BROKEN: (r"device plugin",),
    }
)
# The pod names the program, and the image has no other: no new try on any node helps.
_FINAL = frozenset({Kind.NO_SUCH_PROGRAM, Kind.IMAGE_PLATFORM})


def of_start(text: str) -> Fault | None:
    """Read why a container isn't created or started; return None if the text isn't known."""
    kind = _PHRASES.kind(text)
    return Fault(kind, is_final=kind in _FINAL) if kind else of_config(text)


_NO_NETWORK = re.compile(r"network|\bcni\b|IP address|\bCNI\b")
_NO_RUNTIME = re.compile(
    r'no runtime for "([^"]*)"|RuntimeHandler "([^"]*)" not supported'
    r"|runtimeHandler for runtimeClassName (\S+)"
)


def of_sandbox(text: str) -> Fault:
    """Read why a pod's sandbox can't be made.

    On a new node, the network and NVIDIA's runtime may be installed only later: nothing is final.
    """
    if found := _NO_RUNTIME.search(text):
        return Fault(Kind.RUNTIME, About(name=next(it for it in found.groups() if it is not None)))
    return Fault(Kind.NETWORK if _NO_NETWORK.search(text) else Kind.SANDBOX)


_PROBE = re.compile(r"(Readiness|Startup|Liveness) probe")


def of_probe(text: str) -> Fault:
    """Read the message of an event `Unhealthy`."""
    found = _PROBE.match(text)
    return Fault(Kind.NOT_ALIVE if found and found[1] == "Liveness" else Kind.NOT_READY)
