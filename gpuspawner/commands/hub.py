"""The hub that a command asks about: its configuration, one spawner, and the cluster.

The commands use the hub's own parts, so that they say what the hub would do. They run in a process
of their own: no hub has to run.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
from traitlets.config import Config

from gpuspawner import runtime
from gpuspawner.admission.dry_run import Admission, Answer
from gpuspawner.cluster.health import Health, Live
from gpuspawner.cluster.kinds import KARPENTER_KINDS, KINDS, SCALING_KINDS
from gpuspawner.cluster.reflector import Store
from gpuspawner.cluster.view import ClusterView
from gpuspawner.configuration import check, spawner_class
from gpuspawner.kube.files import FileError, read_objects
from gpuspawner.kube.objects import Manifest, decode
from gpuspawner.offers import Offers
from gpuspawner.quoting import did_you_mean
from gpuspawner.runtime import Runtime, scheduling_rules
from gpuspawner.scheduling import ClusterState, Rules
from gpuspawner.spawner import GPUSpawner

USER = "gpuspawner"
"""The owner of the servers that the commands try; nobody starts them."""

FIRST_LIST_PATIENCE = 60.0
"""How long a command waits for the first list, in seconds."""


@dataclass(frozen=True)
class Hub:
    """What the commands ask.

    Attributes:
        config: The configuration file's content.
        spawner: A spawner as the hub would make one, for a user without a server.
        admission: The API server's dry runs; without a cluster, they have no answer.
    """

    config: Config
    spawner: GPUSpawner
    runtime: Runtime
    admission: Admission

    @property
    def view(self) -> ClusterView:
        """The view of the cluster."""
        return self.runtime.view

    @property
    def state(self) -> ClusterState:
        """The state of the cluster."""
        return self.runtime.view.state

    @property
    def offers(self) -> Offers:
        """The accelerators, configured or discovered."""
        return self.runtime.offers


@asynccontextmanager
async def watching(config: Config) -> AsyncIterator[Hub]:
    """Read the cluster as the hub would, and yield once the first list is complete or has failed.

    Raises:
        ConfigurationError, OfferError: The configuration would stop the hub.
    """
    made = Runtime(_settings(config))
    made.start()
    try:
        spawner = _spawner(config, made)
        await made.view.first_list(FIRST_LIST_PATIENCE)
        yield Hub(config, spawner, made, made.dry_runs.for_start(USER))
    finally:
        await made.view.stop()
        await made.client.close()


def of_files(config: Config, folder: Path) -> Hub:
    """Use the files of a folder instead of a cluster.

    Raises:
        ConfigurationError, OfferError: The configuration would stop the hub.
        FileError: A file doesn't hold what its name says.
    """
    settings = _settings(config)
    made = Runtime(settings, Recorded(folder, scheduling_rules(settings)))
    return Hub(config, _spawner(config, made), made, NoAdmission())


class Recorded(ClusterView):
    """A view of files: ``nodes.json`` holds what ``kubectl get nodes -o json`` printed.

    A kind without a file is unknown, but without Karpenter's files the cluster has no Karpenter.
    """

    def __init__(self, folder: Path, rules: Rules | Callable[[str], Rules]) -> None:
        super().__init__(kinds=(), rules=rules if isinstance(rules, Rules) else rules(""))
        stores: dict[str, tuple[str, Store]] = {
            **{kind.plural: (kind.name, self.state) for kind in KINDS},
            **{kind.plural: (kind.name, self.autoscalers) for kind in SCALING_KINDS},
        }
        files = sorted(folder.glob("*.json"))
        if not files:
            raise FileError(f"{folder}: no file such as nodes.json")
        for kind in KARPENTER_KINDS:
            self.autoscalers.mark_known(kind.name)
        for path in files:
            if path.stem not in stores:
                raise FileError(f"{path}: {path.stem} is no kind{did_you_mean(path.stem, stores)}")
            name, store = stores[path.stem]
            store.mark_known(name)
            for plain in read_objects(path):
                store.put(decode(name, msgspec.json.encode(plain)))

    def health(self) -> Health:
        """The files are all there is to know."""
        return Live(0.0)


class NoAdmission:
    """Admission that has no answer."""

    async def admit(self, namespace: str, pod: Manifest) -> Answer:  # noqa: ARG002
        """As `Admission`."""
        return None


def _settings(config: Config) -> Any:
    return check(config, spawner_class(config))


def _spawner(config: Config, made: Runtime) -> GPUSpawner:
    """Make a spawner without a hub; KubeSpawner builds its pod from these attributes."""
    runtime.use(made)
    user = SimpleNamespace(
        name=USER, escaped_name=USER, id=0, admin=False, url=f"/user/{USER}/", groups=[],
        spawners={},
    )  # fmt: skip
    address = "http://hub:8081/hub/"
    hub = SimpleNamespace(base_url="/hub/", url=address, api_url=f"{address}api", public_host="")
    spawner = spawner_class(config)(config=config, user=user, hub=hub)
    user.spawners[""] = spawner
    return spawner
