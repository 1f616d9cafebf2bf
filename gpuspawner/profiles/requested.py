"""What a pod that gpuspawner didn't write requests, as a grant."""

from gpuspawner.kube.pods import Pod
from gpuspawner.kube.quantity import QuantityError
from gpuspawner.messages import device
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.types import Accelerator
from gpuspawner.scheduling import Rules
from gpuspawner.scheduling.requests import is_extended, pod_requests


def requested(pod: Pod | None, rules: Rules, key: str = "") -> Grant:
    """Return the grant of a pod; without an accelerator if it can't be read.

    Args:
        pod: If it requests several kinds of devices, GPUs come first.
        rules: The scheduler's.
        key: Of the accelerator, such as a profile's slug; by default the resource.
    """
    try:
        amounts = pod_requests(pod, rules) if pod else {}
    except QuantityError:
        return Grant()
    devices = [name for name, amount in amounts.items() if amount > 0 and is_extended(name)]
    if not devices:
        return Grant()
    resource = min(devices, key=lambda name: ("gpu" not in name, name))
    count = amounts[resource]
    accelerator = Accelerator(
        key=key or resource, display_name=device(resource), resource=resource, counts=(count,)
    )
    return Grant(accelerator, count)
