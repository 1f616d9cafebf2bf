"""Build the pod for a grant, or read the grant of a pod that somebody else has built."""

import msgspec

from gpuspawner.compat import pods
from gpuspawner.kube.objects import Manifest
from gpuspawner.kube.pods import Pod
from gpuspawner.kube.quantity import QuantityError
from gpuspawner.messages import device
from gpuspawner.offers import manifest
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.types import Accelerator
from gpuspawner.preflight.learned_hooks import Later
from gpuspawner.scheduling import Rules
from gpuspawner.scheduling.requests import is_device, pod_requests
from gpuspawner.start.host import Host, log_name


class PodBuilder(msgspec.Struct, frozen=True):
    """Builds the pods of a server's owner, one for each grant.

    Attributes:
        stock: KubeSpawner's pod, as the API writes it; None if KubeSpawner can't make it yet,
            because the configuration reads values that ``pre_spawn_hook`` hasn't set.
        later: What becomes of the pods before they are sent.
    """

    offers: Offers
    rules: manifest.PodRules
    stock: Manifest | None
    later: Later

    def pod(self, grant: Grant) -> Manifest:
        """Build the pod for a grant, before the hub's own code changes it.

        Without a stock pod, it is one that the preflight can't judge.

        Raises:
            ManifestError: The accelerator contradicts KubeSpawner's configuration.
        """
        if self.stock is None:
            return {"spec": None}
        return manifest.apply(self.stock, grant, self.rules)


def home_of(spawner: Host) -> tuple[Manifest, ...]:
    """The home directory's claim, which KubeSpawner creates before the pod if it is missing.

    Nothing if a class of the administrator's can't make it yet: it may need what ``pre_spawn_hook``
    or its own ``start`` finds out. Then no pod is refused for the claim, as if a hook created it.
    """
    if not spawner.storage_pvc_ensure:
        return ()
    try:
        return (pods.plain(spawner.get_pvc_manifest()),)
    except Exception as error:  # noqa: BLE001, the start makes it again if it is needed
        name = log_name(spawner)
        spawner.log.info("Can't build the home directory's claim of %s yet: %r", name, error)
        return ()


def requested(pod: Pod | None, rules: Rules, key: str = "") -> Grant:
    """Return what any pod requests, as a grant; without an accelerator if it can't be read.

    Args:
        pod: If it requests several kinds of devices, GPUs come first.
        rules: The scheduler's.
        key: Of the accelerator, such as a profile's slug; by default the resource.
    """
    try:
        amounts = pod_requests(pod, rules) if pod else {}
    except QuantityError:
        return Grant()
    devices = [name for name, amount in amounts.items() if amount > 0 and is_device(name)]
    if not devices:
        return Grant()
    resource = min(devices, key=lambda name: ("gpu" not in name, name))
    count = amounts[resource]
    accelerator = Accelerator(
        key=key or resource, display_name=device(resource), resource=resource, counts=(count,)
    )
    return Grant(accelerator, count)
