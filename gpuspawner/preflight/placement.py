"""What becomes of a pod's placement after the first gates: learned from the pods of earlier starts.

An administrator's hooks and classes run only in a user's own start, and the API server's admission
comes after them. Both may add what lets a pod on a node, or send it to others.
"""

import msgspec
from msgspec.structs import replace

from gpuspawner.kube.objects import Manifest
from gpuspawner.kube.pods import Pod, Toleration
from gpuspawner.policy import Grant

Kind = tuple[str, str]
"""The profile and the accelerator that pods are made for; "" for none."""
Key = tuple[Kind, str]
"""The kind, and whose pods they are; "" for everybody's."""


def kind_of(grant: Grant, profile: str = "") -> Kind:
    """Return what a grant's pod is made for."""
    return profile, grant.accelerator.key if grant.accelerator else ""


_FIELDS = (
    "affinity",
    "nodeName",
    "nodeSelector",
    "priorityClassName",
    "runtimeClassName",
    "schedulerName",
    "tolerations",
    "topologySpreadConstraints",
)
"""Fields of a pod's spec that decide where it may go."""
_EVERYTHING = [Toleration(operator="Exists")]


def _changes(before: Manifest, after: Manifest) -> Manifest:
    """Return the fields that another placement has changed, with their new values."""
    was, now = before["spec"], after["spec"]
    found = {name: now.get(name) for name in _FIELDS}
    return {name: it for name, it in found.items() if (it or None) != (was.get(name) or None)}


def anywhere(pod: Pod) -> Pod:
    """Return the pod without all that decides where it may go but its requests and volumes."""
    spec = replace(
        pod.spec,
        affinity=None,
        node_selector=None,
        tolerations=_EVERYTHING,
        topology_spread_constraints=None,
    )
    return replace(pod, spec=spec)


class Placements:
    """What has been seen of later changes of pods. One for the whole hub.

    Attributes:
        version: Changes with what is known.
    """

    def __init__(self) -> None:
        self.version = 0
        self._seen: dict[Key, Manifest] = {}
        self._differing: set[Key] = set()
        self._admitted: dict[Kind, tuple[Manifest, ...]] = {}

    def expected(self, key: Key, pod: Manifest) -> Manifest:
        """Return a pod with what the hub's own code has changed of the first one of its kind."""
        spec = pod.get("spec")
        return pod if spec is None else {**pod, "spec": {**spec, **self._seen.get(key, {})}}

    def is_open(self, key: Key) -> bool:
        """Whether nobody can tell what the hub's own code does: no pod was seen, or they differ."""
        return key not in self._seen or key in self._differing

    def learn(self, key: Key, expected: Manifest, sent: Manifest) -> None:
        """Learn from a pod that the hub's own code has changed, and from what was expected."""
        if expected.get("spec") is None:  # nobody could make it before
            return
        changed = _changes(expected, sent)
        if key not in self._seen:
            self._seen[key] = changed
            self.version += 1
        elif changed and key not in self._differing:
            self._differing.add(key)
            self.version += 1

    def admit(self, kind: Kind, tolerations: tuple[Manifest, ...]) -> None:
        """Learn which tolerations admission has added to a pod."""
        if tolerations and self._admitted.get(kind) != tolerations:
            self._admitted[kind] = tolerations
            self.version += 1

    def admitted(self, kind: Kind, pod: Manifest) -> Manifest:
        """Return a pod with the tolerations that admission has last added to one of its kind."""
        tolerations = [*(pod["spec"].get("tolerations") or ()), *self._admitted.get(kind, ())]
        return {**pod, "spec": {**pod["spec"], "tolerations": tolerations}}


class Later(msgspec.Struct, frozen=True):
    """What becomes of the pods of one server after the gate that judges them.

    Attributes:
        placements: What has been seen of it.
        has_own_code: Whether the hub has code of its own that may change them.
        owner: The server's owner, if that code may treat users differently; "" otherwise.
        is_unknowable: Whether the code depends on more, or runs before the second gate.
    """

    placements: Placements
    has_own_code: bool = False
    owner: str = ""
    is_unknowable: bool = False

    def expected(self, kind: Kind, pod: Manifest) -> Manifest:
        """As `Placements.expected`."""
        return self.placements.expected((kind, self.owner), pod) if self.has_own_code else pod

    def is_open(self, kind: Kind) -> bool:
        """As `Placements.is_open`."""
        is_open = self.has_own_code and self.placements.is_open((kind, self.owner))
        return self.is_unknowable or is_open

    def learn(self, kind: Kind, expected: Manifest, sent: Manifest) -> None:
        """As `Placements.learn`."""
        if self.has_own_code:
            self.placements.learn((kind, self.owner), expected, sent)
