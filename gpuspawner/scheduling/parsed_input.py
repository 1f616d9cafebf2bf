"""Pods and claims that aren't in the state, as callers give them: plain API dicts or decoded."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from gpuspawner.kube.objects import UNDECODABLE, strict_convert
from gpuspawner.kube.pods import Pod
from gpuspawner.kube.storage import PersistentVolumeClaim

PlainOrPod = Mapping[str, object] | Pod
PlainOrClaim = Mapping[str, object] | PersistentVolumeClaim

_T = TypeVar("_T", Pod, PersistentVolumeClaim)


def parsed(thing: Mapping[str, object] | _T, type_: type[_T]) -> _T | str:
    """Return the object, or why it can't be decoded. It needs no name."""
    if isinstance(thing, type_):
        return thing
    try:
        return strict_convert(thing, type_)
    except UNDECODABLE as error:
        return str(error)


def parsed_claims(claims: Iterable[PlainOrClaim]) -> list[PersistentVolumeClaim] | str:
    """Return the claims, or why one of them can't be decoded."""
    found: list[PersistentVolumeClaim] = []
    for claim in claims:
        known = parsed(claim, PersistentVolumeClaim)
        if isinstance(known, str):
            return known
        found.append(known)
    return found
