"""Build the pod for a grant."""

import msgspec

from gpuspawner import manifest, pods, policy
from gpuspawner.kube.objects import Manifest
from gpuspawner.manifest import ManifestError, PodRules
from gpuspawner.offers import Offers
from gpuspawner.options import GPURequest
from gpuspawner.policy import Grant
from gpuspawner.spawn.host import Host


class PodBuilder(msgspec.Struct, frozen=True):
    """Builds the pods of a server's owner, one for each grant.

    Attributes:
        stock: KubeSpawner's pod, as the API writes it; None if KubeSpawner can't make it yet,
            because the configuration reads values that ``pre_spawn_hook`` hasn't set.
    """

    offers: Offers
    rules: PodRules
    stock: Manifest | None

    def pod(self, grant: Grant) -> Manifest:
        """Build the pod for a grant; without a stock pod, one that the preflight can't judge.

        Raises:
            ManifestError: The accelerator contradicts KubeSpawner's configuration.
        """
        if self.stock is None:
            return {"spec": None}
        return manifest.apply(self.stock, grant, self.rules)

    def variant(self, request: GPURequest) -> tuple[Grant, Manifest] | None:
        """Build the grant and the pod for a request; None if it isn't on offer."""
        grant = policy.decide(request, self.offers)
        try:
            return (grant, self.pod(grant)) if isinstance(grant, Grant) else None
        except ManifestError:
            return None


def home_of(spawner: Host) -> tuple[Manifest, ...]:
    """The home directory's claim, which KubeSpawner creates before the pod if it is missing."""
    return (pods.plain(spawner.get_pvc_manifest()),) if spawner.storage_pvc_ensure else ()
