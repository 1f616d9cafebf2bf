"""The pod that a grant makes for one person."""

from dataclasses import dataclass

from gpuspawner import manifest, pods, policy
from gpuspawner.kube.manifest import Manifest
from gpuspawner.manifest import ManifestError, PodRules
from gpuspawner.offers import Offers
from gpuspawner.options import GPURequest
from gpuspawner.policy import Grant, Person
from gpuspawner.spawn.host import Host


@dataclass(frozen=True, slots=True)
class PodBuilder:
    """Makes the pods of a server's owner, each by another grant.

    Attributes:
        person: The server's owner.
        offers: What is on offer at this moment.
        rules: What holds for every pod.
        stock: KubeSpawner's pod, as the API writes it; None while it can't be made because the
            configuration reads what the administrator's ``pre_spawn_hook`` has yet to set.
    """

    person: Person
    offers: Offers
    rules: PodRules
    stock: Manifest | None

    def pod(self, grant: Grant) -> Manifest:
        """The pod that a grant makes; one that can't be judged while there is no stock pod.

        Raises:
            ManifestError: The accelerator contradicts KubeSpawner's configuration.
        """
        if self.stock is None:
            return {"spec": None}
        return manifest.apply(self.stock, grant, self.rules)

    def variant(self, request: GPURequest) -> tuple[Grant, Manifest] | None:
        """The grant and the pod for another request; None if the person can't have it."""
        grant = policy.decide(request, self.person, self.offers)
        try:
            return (grant, self.pod(grant)) if isinstance(grant, Grant) else None
        except ManifestError:
            return None


def home_of(spawner: Host) -> tuple[Manifest, ...]:
    """The home that KubeSpawner creates before the pod, if there is none yet."""
    return (pods.plain(spawner.get_pvc_manifest()),) if spawner.storage_pvc_ensure else ()
