"""What the administrator offers: accelerators, images and sizes."""

from gpuspawner.offers.errors import OfferError
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.types import (
    Accelerator,
    Choices,
    Default,
    Image,
    Memory,
    ScaleUp,
    UnlistedImage,
    UnlistedMemory,
)

__all__ = [
    "Accelerator",
    "Choices",
    "Default",
    "Image",
    "Memory",
    "OfferError",
    "Offers",
    "ScaleUp",
    "UnlistedImage",
    "UnlistedMemory",
]
