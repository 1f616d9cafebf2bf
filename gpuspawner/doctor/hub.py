"""The hub that a command asks about: its configuration, one spawner, and the cluster.

The commands use the hub's own parts, so that they say what the hub would do. They run in a process
of their own: no hub has to run, and the cluster may be a folder of files, each with the output of
`kubectl get -o json` for one kind.
"""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from traitlets.config import Config

from gpuspawner import runtime
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
from gpuspawner.compat.kubespawner import labels_of_claim
from gpuspawner.configuration import check, spawner_class
from gpuspawner.gates.what_if import NO_ID, NOBODY, Asking, UnusableError, imagined
from gpuspawner.kube.files import FileError, read_objects
from gpuspawner.kube.objects import Manifest, decode, mapping
from gpuspawner.kube.quoting import did_you_mean
from gpuspawner.kube.servers import USER
from gpuspawner.kube.storage import PersistentVolumeClaim
from gpuspawner.policies.accounts import Accounts, Memberships
from gpuspawner.policies.charges import Who
from gpuspawner.policies.hub_policies import HubPolicies
from gpuspawner.policies.owner import Owner
from gpuspawner.policies.pod_owners import AsAnnotated
from gpuspawner.policies.policies import Policies, Policy
from gpuspawner.preflight.dry_runs import Answer
from gpuspawner.runtime import Runtime
from gpuspawner.scheduling import ClusterState, Rules
from gpuspawner.scheduling.state import ENDED
from gpuspawner.spawner import GPUSpawner
from gpuspawner.traits.settings import scheduling_rules


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
    """The pods of a folder's ``pods.json`` that may be users' servers, and haven't ended."""

    def __init__(self, folder: Path, accounts: Accounts) -> None:
        kind = servers_of(accounts.namespace)
        super().__init__(kind, accounts.ledger, load_configuration)  # never started
        path = folder / f"{PODS.plural}.json"
        self._health: Health = Live(0.0) if path.exists() else Unreachable(f"there is no {path}")
        for plain in read_objects(path) if path.exists() else ():
            is_there = accounts.namespace in ("", mapping(plain.get("metadata")).get("namespace"))
            if is_there and mapping(plain.get("status")).get("phase") not in ENDED:
                accounts.ledger.put(decode(kind.name, msgspec.json.encode(plain)))

    def health(self) -> Health:
        """As `Recorded.health`."""
        return self._health


class NoSpawnerError(UnusableError):
    """An administrator's class needs more of a user than commands know of one."""


FIRST_LIST_PATIENCE = 60.0
"""How long a command waits for the first list, in seconds."""


class Hub(Asking, frozen=True):
    """What the commands ask.

    Attributes:
        config: The configuration file's content.
        written: The policies as configured, if any; nobody in particular is judged by them.
    """

    spawner: GPUSpawner
    config: Config
    written: HubPolicies | None = None
    owner: Owner = NOBODY

    @property
    def policies(self) -> Policies | Callable[..., Any]:
        """The policies as configured."""
        return self.written.given if self.written is not None else Policies()

    @property
    def view(self) -> ClusterView:
        """The view of the cluster."""
        return self.runtime.view

    @property
    def state(self) -> ClusterState:
        """The state of the cluster."""
        return self.runtime.view.state


@asynccontextmanager
async def watching(
    config: Config, owner: Owner = NOBODY, judged: Owner = NOBODY
) -> AsyncIterator[Hub]:
    """Read the cluster as the hub would, and yield once the first list is complete or has failed.

    The policies judge *judged*, who is the owner or nobody in particular.

    Raises:
        ConfigurationError, OfferError: The configuration would stop the hub.
        NoSpawnerError: As `spawner_in`.
    """
    made = Runtime(check(config, spawner_class(config)))
    written = _begin(made, judged)
    made.start()
    try:
        await made.first_list(FIRST_LIST_PATIENCE)
        spawner = spawner_in(config, made.view.state, owner)
        yield Hub(spawner, made, made.dry_runs.for_start(owner.name), config, written, owner)
    finally:
        if made.accounts is not None:
            await made.accounts.following.stop()
        await made.view.stop()
        await made.client.close()


def of_files(config: Config, folder: Path, owner: Owner = NOBODY) -> Hub:
    """Use the files of a folder instead of a cluster.

    Raises:
        ConfigurationError, OfferError: The configuration would stop the hub.
        FileError: A file doesn't hold what its name says.
        NoSpawnerError: As `spawner_in`.
    """
    settings = check(config, spawner_class(config))
    made = Runtime(settings, Recorded(folder, scheduling_rules(settings)))
    written = _begin(made, owner)
    if made.accounts is not None:
        made.accounts.following = RecordedPods(folder, made.accounts)
    spawner = spawner_in(config, made.view.state, owner)
    return Hub(spawner, made, NoAdmission(), config, written, owner)


class GroupsAsCharged(Memberships):
    """Groups without members: the commands don't read the hub's database.

    A group's servers are those that its shares were charged for, as their pods say.
    """

    def ids(self, database: Any, policy: Policy, group: str) -> frozenset[Who]:  # noqa: ARG002
        """As `Memberships.ids`."""
        return frozenset()


class NoAdmission:
    """Admission that has no answer."""

    async def admit(self, namespace: str, pod: Manifest) -> Answer:  # noqa: ARG002
        """As `Admission`."""
        return None


def _begin(made: Runtime, judged: Owner) -> HubPolicies | None:
    """Use the parts of a hub, and return the policies; they judge nobody in particular."""
    written = made.policies
    if made.accounts is not None:
        made.accounts.memberships = GroupsAsCharged()
        made.accounts.ledger.claims = AsAnnotated(made.accounts.namespace)
    if judged == NOBODY:
        made.policies = None
    runtime.use(made)
    return written


ANY_ID = 987_654_321
"""An id that no user has, and no name has by chance."""


def spawner_in(config: Config, state: ClusterState, owner: Owner) -> GPUSpawner:
    """Make a spawner for somebody whose id isn't known, unless their own claim tells it.

    ``pvc_name_template`` may have ``{userid}`` in it. Whoever has no claim yet gets a new one, and
    then the id makes no difference.

    Raises:
        NoSpawnerError: The class fails for an imagined user.
    """
    made = _made(config, owner, ANY_ID)
    before, *after = re.escape("/".join((made.namespace, made.pvc_name))).split(str(ANY_ID))
    name = re.compile(before + "([1-9][0-9]*)" + r"\1".join(after))
    label = labels_of_claim(made)[USER]
    ids = [
        int(found[1])
        for it in state.storage.all(PersistentVolumeClaim)
        if (found := name.fullmatch("/".join(it.metadata.key)))
        and (it.metadata.labels or {}).get(USER) == label
    ]
    return _made(config, owner, ids[0] if after and len(ids) == 1 else NO_ID)


def _made(config: Config, owner: Owner, id_: int) -> GPUSpawner:
    kind = spawner_class(config)
    try:
        made: GPUSpawner = imagined(kind, config, owner, id_=id_)
    except Exception as error:
        raise NoSpawnerError(f"{kind.__name__}: {error!r}") from error
    return made
