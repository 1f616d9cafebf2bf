"""What becomes of a pod's placement after the first gates: learned from the pods of earlier starts.

An administrator's hooks and classes run only in a user's own start, and the API server's admission
comes after them. Both may add what lets a pod on a node, or send it to others.
"""

import time

import msgspec

from gpuspawner.kube.caches import Recent
from gpuspawner.kube.objects import Manifest
from gpuspawner.kube.pods import Pod, Toleration
from gpuspawner.offers.grant import Grant
from gpuspawner.preflight.downloads import containers
from gpuspawner.scheduling.requests import is_device

MadeFor = tuple[str, str]
"""The profile and the accelerator that pods are made for; "" for none."""
Tolerations = tuple[Manifest, ...]
Whose = tuple[MadeFor, str]
"""The kind, and the server; "" if the hub's own code treats all alike."""


def kind_of(grant: Grant, profile: str = "") -> MadeFor:
    """Return what a grant's pod is made for."""
    return profile, grant.accelerator.key if grant.accelerator else ""


_FIELDS = (
    "affinity", "nodeName", "nodeSelector", "priorityClassName", "runtimeClassName",
    "schedulerName", "tolerations", "topologySpreadConstraints",
)  # fmt: skip
"""The fields of a pod's spec that decide on which nodes it can run."""
_EVERYTHING = [Toleration(operator="Exists")]
_FRESH = 600.0
"""For how many seconds one knows what code does for a server if it may ask anything about it."""
_MOST = 10_000
"""How many pods are remembered."""


def _placement(pod: Manifest) -> Manifest:
    return {name: it for name in _FIELDS if (it := pod["spec"].get(name))}


def _requests(pod: Manifest) -> list[Manifest]:
    return [it.get("resources") or {} for it in containers(pod)]


def placement_of(pod: Manifest) -> bytes:
    """Return what hooks and admission usually look at, for a key: placement and devices."""
    devices = [
        (name, str(it))
        for resources in _requests(pod)
        for name, it in (resources.get("limits") or {}).items()
        if is_device(name)
    ]
    judged = (_placement(pod), sorted(devices))
    return msgspec.msgpack.encode(judged, order="deterministic")


def anywhere(pod: Pod) -> Pod:
    """Return the pod with nothing that chooses its nodes but its requests and volumes."""
    return pod.with_spec(
        affinity=None,
        node_selector=None,
        tolerations=_EVERYTHING,
        topology_spread_constraints=None,
    )


class _Seen(msgspec.Struct, frozen=True):
    """What code has changed of a pod: None if nobody can tell; what was chosen, and when it was."""

    changed: Manifest | None = None
    chosen: object = None
    at: float = 0.0


class Placements:
    """What has been seen of later changes of pods. One for the whole hub.

    Attributes:
        version: Changes with what is known.
    """

    def __init__(self) -> None:
        self.version = 0
        self._seen = Recent[tuple[Whose, bytes], _Seen](_MOST)
        self._admitted: dict[MadeFor, tuple[Tolerations, Tolerations]] = {}
        """What admission has added to the last two pods of a kind."""

    def find(self, whose: Whose, pod: Manifest) -> Manifest | None:
        """Return what the hub's own code has changed of the last pod that was like this one.

        What was sent in the end is expected to be sent again as it is. None if nobody can tell what
        the code does: it has sent no pod like it, or has changed what that one requests.
        """
        return self._last(whose, pod).changed

    def tells(self, whose: Whose, pod: Manifest, chosen: object) -> bool:
        """Whether the last pod like this one tells what becomes of it.

        If the code may treat servers differently, it may also look at what is chosen for one.
        """
        last = self._last(whose, pod)
        return last.changed is not None and (not whose[1] or last.chosen == chosen)

    def _last(self, whose: Whose, pod: Manifest) -> _Seen:
        if pod.get("spec") is None:
            return _Seen()
        last = self._seen.get((whose, placement_of(pod)), _Seen())
        return _Seen() if whose[1] and time.monotonic() - last.at > _FRESH else last

    def learn(self, whose: Whose, made: Manifest, sent: Manifest, chosen: object) -> None:
        """Learn from a pod that is sent, and from what was made of what is chosen."""
        if made.get("spec") is None:  # nobody could make it before
            return
        chosen = chosen if whose[1] else None
        before, after = _placement(made), _placement(sent)
        changed = {it: after.get(it) for it in _FIELDS if before.get(it) != after.get(it)}
        has_turned = self.tells(whose, made, chosen) and self.find(whose, made) != changed
        if has_turned:  # the code has changed its mind
            for key in [it for it in self._seen if it[0] == whose]:
                del self._seen[key]
        is_unclear = has_turned or _requests(made) != _requests(sent)
        self._keep((whose, placement_of(made)), None if is_unclear else changed, chosen)
        if not is_unclear and changed:
            self._keep((whose, placement_of(sent)), {}, chosen)

    def _keep(self, key: tuple[Whose, bytes], changed: Manifest | None, chosen: object) -> None:
        last = self._seen.get(key)
        if last is None or (last.changed, last.chosen) != (changed, chosen):
            self.version += 1
        self._seen[key] = _Seen(changed, chosen, time.monotonic())

    def admit(self, kind: MadeFor, tolerations: Tolerations) -> None:
        """Learn which tolerations admission has added to a pod."""
        known = self._admitted.get(kind)
        now = known[1] if known else tolerations, tolerations
        if now != known:
            self._admitted[kind] = now
            self.version += 1

    def admitted(self, kind: MadeFor, pod: Manifest) -> Manifest | None:
        """Return a pod with the tolerations that admission has last added to those of its kind.

        None if it has treated the last two differently: it may look at the user.
        """
        before, last = self._admitted.get(kind, ((), ()))
        tolerations = [*(pod["spec"].get("tolerations") or ()), *last]
        made = {**pod, "spec": {**pod["spec"], "tolerations": tolerations}}
        return made if before == last else None

    def tolerant(self, kind: MadeFor, pod: Manifest) -> Manifest:
        """Return a pod with the most tolerations that admission adds, as far as anybody knows.

        If it has never answered for a pod of the kind, nor for a sample, it may add any.
        """
        known = self.admitted(kind, pod) if kind in self._admitted else None
        return known or {**pod, "spec": {**pod["spec"], "tolerations": [{"operator": "Exists"}]}}


class Later(msgspec.Struct, frozen=True):
    """What becomes of the pods of one server after the gate that judges them.

    Attributes:
        placements: What has been seen of it.
        has_own_code: Whether the hub has code of its own that may change where they can run, or
            what they request.
        has_any_code: Whether it has code of its own that may change anything.
        sets_priority: Whether that code sets a PriorityClass.
        server: The server, by its owner's name and its own, if that code may treat servers
            differently; "" otherwise.
        is_unknowable: Whether it depends on the options that a start will have.
    """

    placements: Placements
    has_own_code: bool = False
    has_any_code: bool = False
    sets_priority: bool = False
    server: str = ""
    is_unknowable: bool = False

    def expected(self, kind: MadeFor, pod: Manifest) -> Manifest:
        """Return a pod with what the hub's own code will probably change."""
        changed = self.placements.find((kind, self.server), pod) if self.has_own_code else None
        return {**pod, "spec": {**pod["spec"], **changed}} if changed else pod

    def is_open(self, kind: MadeFor, pod: Manifest, chosen: object) -> bool:
        """Whether nobody can tell what becomes of the pod that is made of what is chosen."""
        if self.is_unknowable or not self.has_own_code:
            return self.is_unknowable
        return not self.placements.tells((kind, self.server), pod, chosen)

    def learn(self, kind: MadeFor, made: Manifest, sent: Manifest, chosen: object) -> None:
        """Learn from a pod that is sent; what runs before the second gate matters to the first."""
        self.placements.learn((kind, self.server), made, sent, chosen)
