"""Reads why a volume isn't attached or mounted.

Sources: ``pkg/controller/volume/attachdetach/reconciler``, ``pkg/volume/util/operationexecutor``
and ``pkg/kubelet/volumemanager`` of 1.36.2.
"""

import re

from gpuspawner.launch.config_faults import missing
from gpuspawner.launch.trouble import About, Fault, Kind

_VOLUME = re.compile(r'for volume "([^"]*)"')
_PODS = re.compile(r"already used by pod\(s\) ([-a-z0-9.]+(?:, [-a-z0-9.]+)*)")
_NODE = re.compile(r"attached to (?:the )?node:? \"?([a-z0-9][-a-z0-9.]*)")
_UNMOUNTED = re.compile(
    r"(?:unmounted volumes|list of unattached/unmounted volumes|volumes)=\[(.*?)\]"
)
_CLAIM = re.compile(r'persistentvolumeclaims? "([^"]*)" (?:not found|is being deleted)')
_MOST = 64


def of_volume(text: str, reason: str = "") -> list[Fault]:
    """Read the message of FailedAttachVolume, FailedMount or FailedMapVolume.

    Returns:
        A fault for each volume that it names; one without a volume if it names none.
    """
    claim = _CLAIM.search(text)
    if claim is not None:
        return [Fault(Kind.CLAIM_MISSING, About(claim=claim[1]))]
    named = _VOLUME.search(text)
    volume = named[1] if named else ""
    if "Multi-Attach" in text:
        return [Fault(Kind.VOLUME_IN_USE, About(volume=volume), holders=_holders(text))]
    if lacking := missing(text):
        return [Fault(lacking.kind, About(volume=volume, name=lacking.about.name))]
    waited_for = None if named else _UNMOUNTED.search(text)
    if waited_for is not None:
        names = waited_for[1].split()[:_MOST]
        return [Fault(Kind.VOLUME_WAITS, About(volume=it)) for it in names or [""]]
    kind = Kind.VOLUME_ATTACH if reason == "FailedAttachVolume" else Kind.VOLUME_MOUNT
    return [Fault(kind, About(volume=volume))]


def _holders(text: str) -> tuple[str, ...]:
    pods = _PODS.search(text)
    if pods is not None:
        return tuple(it.rstrip(".") for it in pods[1].split(", "))
    node = _NODE.search(text)
    return (node[1],) if node else ()
