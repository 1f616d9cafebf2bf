"""A cluster in a folder of files, each with the output of `kubectl get -o json` for one kind."""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from gpuspawner.cluster.client import load_configuration
from gpuspawner.cluster.following import Following
from gpuspawner.cluster.health import Health, Live, Unreachable
from gpuspawner.cluster.kinds import (
    KARPENTER_KINDS,
    KINDS,
    KUEUE_KINDS,
    MACHINE_KINDS,
    PODS,
    SCALING_KINDS,
    servers_of,
)
from gpuspawner.cluster.reflector import Store
from gpuspawner.cluster.view import ClusterView
from gpuspawner.kube.files import FileError, read_objects
from gpuspawner.kube.objects import UNDECODABLE, decode
from gpuspawner.kube.quoting import did_you_mean
from gpuspawner.policies.accounts import Accounts
from gpuspawner.scheduling import Rules
from gpuspawner.scheduling.state import ENDED


class Recorded(ClusterView):
    """A view of files: ``nodes.json`` holds what ``kubectl get nodes -o json`` printed.

    A kind without a file is unknown, but without Karpenter's files the cluster has no Karpenter;
    and no Kueue without Kueue's.
    """

    def __init__(self, folder: Path, rules: Rules | Callable[[str], Rules]) -> None:
        super().__init__(kinds=(), rules=rules if isinstance(rules, Rules) else rules(""))
        stores: dict[str, tuple[str, Store]] = {
            **{kind.plural: (kind.name, self.state) for kind in KINDS},
            **{kind.plural: (kind.name, self.autoscalers) for kind in SCALING_KINDS},
            **{kind.plural: (kind.name, self.queues) for kind in KUEUE_KINDS},
        }
        files = sorted(folder.glob("*.json"))
        if not files:
            raise FileError(f"{folder}: no file such as nodes.json")
        for kind in (*KARPENTER_KINDS, *MACHINE_KINDS):
            self.autoscalers.mark_known(kind.name)
        for kind in KUEUE_KINDS:
            self.queues.mark_known(kind.name)
        for path in files:
            if path.stem not in stores:
                raise FileError(f"{path}: {path.stem} is no kind{did_you_mean(path.stem, stores)}")
            name, store = stores[path.stem]
            store.mark_known(name)
            for plain in read_objects(path):
                store.put(decode(name, msgspec.json.encode(plain)))
        self.wake()

    def health(self) -> Health:
        """The files are all there is to know."""
        return Live(0.0)


class RecordedPods(Following):
    """The pods of a folder's ``pods.json`` that may be users' servers."""

    def __init__(self, folder: Path, accounts: Accounts) -> None:
        kind = servers_of(accounts.namespace)
        super().__init__(kind, accounts.ledger, load_configuration)  # never started
        path = folder / f"{PODS.plural}.json"
        self._health: Health = Live(0.0) if path.exists() else Unreachable(f"there is no {path}")
        for pod in _running(path, accounts.namespace) if path.exists() else ():
            accounts.ledger.put(decode(kind.name, msgspec.json.encode(pod)))

    def health(self) -> Health:
        """As `Recorded.health`."""
        return self._health


class _Meta(msgspec.Struct):
    namespace: str = ""


class _Status(msgspec.Struct):
    phase: str = ""


class _Pod(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    status: _Status = msgspec.field(default_factory=_Status)


def _running(path: Path, namespace: str) -> Iterator[dict[str, object]]:
    """Yield the pods that a watch would show: those of the namespace that haven't ended."""
    for plain in read_objects(path):
        try:
            pod = msgspec.convert(plain, _Pod)
        except UNDECODABLE:  # it may be a server's, so it has to be reported
            yield plain
            continue
        if namespace in ("", pod.metadata.namespace) and pod.status.phase not in ENDED:
            yield plain
