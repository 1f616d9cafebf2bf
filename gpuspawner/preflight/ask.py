"""What is asked for a person, as the spawner puts it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from gpuspawner.admission.rejection import Rejection
from gpuspawner.kube.objects import Odd, convert
from gpuspawner.kube.pods import Pod
from gpuspawner.offers import Offers
from gpuspawner.options import GPURequest
from gpuspawner.policy import Grant
from gpuspawner.preflight.claims import Plain
from gpuspawner.preflight.judge import Subject
from gpuspawner.preflight.strangers import Key

Admit = Callable[[Plain], Awaitable[Plain | Rejection | None]]
"""What admission makes of a pod: the pod, or a no; None where it could not be asked."""


async def nobody(_: Plain) -> None:
    """Admission where there is nobody to ask."""


@dataclass(frozen=True)
class Ask:
    """What is asked for a person, and how to find what they could have instead.

    Attributes:
        namespace: Where the pod is to be created.
        name: The pod's name there.
        pod: The pod that the grant makes, as the API writes it.
        grant: What policy granted.
        new_claims: PersistentVolumeClaims that the spawner makes before the pod, if they do not
            exist yet.
        offers: What else is on offer; without any no alternatives are looked for.
        variant: What the same person would get for another request: the grant and its pod; None
            where policy denies it.
        admit: Asks the API server what admission makes of a pod of this namespace.
    """

    namespace: str
    name: str
    pod: Plain
    grant: Grant
    new_claims: tuple[Plain, ...] = ()
    offers: Offers = field(default_factory=Offers)
    variant: Callable[[GPURequest], tuple[Grant, Plain] | None] = lambda _: None
    admit: Admit = nobody

    @property
    def key(self) -> Key:
        """What seats know the pod by."""
        return self.namespace, self.name

    @cached_property
    def subject(self) -> Subject | Odd:
        """What is judged; an `Odd` where the pod cannot be understood."""
        return self.subject_of(self.pod)

    def subject_of(self, plain: Plain) -> Subject | Odd:
        """Another pod of the same name, read as if it were already in its namespace."""
        metadata = plain.get("metadata")
        place = {"namespace": self.namespace, "name": self.name}
        named = {**(metadata if isinstance(metadata, Mapping) else {}), **place}
        pod = convert("Pod", {**plain, "metadata": named})
        if isinstance(pod, Pod):
            return Subject(pod, self.new_claims)
        return pod if isinstance(pod, Odd) else Odd("Pod", *self.key, "", "it is no pod")
