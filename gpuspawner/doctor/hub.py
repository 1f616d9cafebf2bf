"""The hub that a command asks about: its configuration, one spawner, and the cluster.

The commands use the hub's own parts, so that they say what the hub would do. They run in a process
of their own: no hub has to run.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from traitlets.config import Config

from gpuspawner import runtime
from gpuspawner.cluster.view import ClusterView
from gpuspawner.configuration import check, spawner_class
from gpuspawner.doctor.recorded import Recorded, RecordedPods
from gpuspawner.gates.what_if import NOBODY, Asking, imagined
from gpuspawner.kube.objects import Manifest
from gpuspawner.offers.offers import Offers
from gpuspawner.policies.charges import Who
from gpuspawner.policies.hub_policies import HubPolicies
from gpuspawner.policies.memberships import Memberships
from gpuspawner.policies.owner import Owner
from gpuspawner.policies.pod_owners import AsAnnotated
from gpuspawner.policies.policies import Policies, Policy
from gpuspawner.preflight.dry_runs import Admission, Answer
from gpuspawner.runtime import Runtime
from gpuspawner.scheduling import ClusterState
from gpuspawner.spawner import GPUSpawner
from gpuspawner.traits.settings import scheduling_rules

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

    @property
    def offers(self) -> Offers:
        """The accelerators, configured or discovered."""
        return self.runtime.offers


@asynccontextmanager
async def watching(config: Config, owner: Owner = NOBODY) -> AsyncIterator[Hub]:
    """Read the cluster as the hub would, and yield once the first list is complete or has failed.

    Raises:
        ConfigurationError, OfferError: The configuration would stop the hub.
    """
    made = Runtime(_settings(config))
    hub = _hub(config, made, made.dry_runs.for_start(owner.name), owner)
    made.start()
    try:
        await made.view.first_list(FIRST_LIST_PATIENCE)
        yield hub
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
    """
    settings = _settings(config)
    made = Runtime(settings, Recorded(folder, scheduling_rules(settings)))
    hub = _hub(config, made, NoAdmission(), owner)
    if made.accounts is not None:
        made.accounts.following = RecordedPods(folder, made.accounts)
    return hub


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


def _settings(config: Config) -> Any:
    return check(config, spawner_class(config))


def _hub(config: Config, made: Runtime, admission: Admission, owner: Owner) -> Hub:
    written = made.policies
    if made.accounts is not None:
        made.accounts.memberships = GroupsAsCharged()
        made.accounts.ledger.claims = AsAnnotated(made.accounts.namespace)
    if owner == NOBODY:
        made.policies = None
    runtime.use(made)
    return Hub(spawner_of(config, owner), made, admission, config, written, owner)


def spawner_of(config: Config, owner: Owner) -> GPUSpawner:
    """Make a spawner without a hub."""
    made: GPUSpawner = imagined(spawner_class(config), config, owner)
    return made
