"""What a server gets of what is on offer."""

import msgspec

from gpuspawner.offers.offers import Offers
from gpuspawner.offers.types import Accelerator, Image
from gpuspawner.offers.user_options import GPURequest


class Grant(msgspec.Struct, frozen=True):
    """What a server gets, resolved to the administrator's own entries.

    Attributes:
        accelerator: None for a server without a GPU.
        gpus: How many of its resource; 0 if and only if there is no accelerator.
        image: None keeps KubeSpawner's image.
        memory: The limit in bytes; None keeps KubeSpawner's.
        cpu: The limit in millicores; None keeps KubeSpawner's.
    """

    accelerator: Accelerator | None = None
    gpus: int = 0
    image: Image | None = None
    memory: int | None = None
    cpu: int | None = None


def grant_for(request: GPURequest, offers: Offers) -> Grant | None:
    """Grant a request that is on offer; None for any other.

    The request isn't trusted: it may have been parsed against other offers, or made by hand.
    """
    accelerator = offers.accelerators.get(request.accelerator or "")
    if (accelerator is None) != (request.accelerator is None):
        return None
    choices = offers.choices(accelerator)
    image = None if request.image is None else choices.image(request.image)
    sizes = {memory.text: memory.bytes for memory in choices.sizes}
    millicores = None if request.cpu is None else round(request.cpu * 1000)
    offered = (
        request.gpus in choices.counts
        and (request.image is None or image is not None)
        and (request.memory is None or request.memory in sizes)
        and (millicores is None or millicores in choices.cpu)
    )
    if not offered:
        return None
    return Grant(
        accelerator=accelerator,
        gpus=request.gpus,
        image=image,
        memory=sizes.get(request.memory or ""),
        cpu=millicores,
    )
