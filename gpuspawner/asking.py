"""Somebody who asks: what they could be given, and the pod that each of it would make."""

from dataclasses import dataclass

from gpuspawner import manifest, policy
from gpuspawner.manifest import ManifestError, PodRules
from gpuspawner.offers import Offers
from gpuspawner.options import GPURequest
from gpuspawner.pods import Plain
from gpuspawner.policy import Grant, Person


@dataclass(frozen=True, slots=True)
class Asking:
    """A person before the offers, with the pod that KubeSpawner would make for them.

    Attributes:
        person: The owner of the server.
        offers: What is on offer at this moment.
        rules: What holds for every pod.
        stock: KubeSpawner's pod, as the API writes it; None while it cannot be made, since the
            configuration reads what the administrator's ``pre_spawn_hook`` has yet to set.
    """

    person: Person
    offers: Offers
    rules: PodRules
    stock: Plain | None

    def pod(self, grant: Grant) -> Plain:
        """The pod that a grant makes; one that cannot be judged where there is no stock pod.

        Raises:
            ManifestError: The accelerator contradicts KubeSpawner's configuration.
        """
        if self.stock is None:
            return {"spec": None}
        return manifest.apply(self.stock, grant, self.rules)

    def variant(self, request: GPURequest) -> tuple[Grant, Plain] | None:
        """The grant and the pod for another request; None where the person cannot have it."""
        grant = policy.decide(request, self.person, self.offers)
        try:
            return (grant, self.pod(grant)) if isinstance(grant, Grant) else None
        except ManifestError:
            return None
