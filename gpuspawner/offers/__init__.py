"""What the administrator offers: accelerators, images and sizes."""

from gpuspawner.offers.offers import Offers
from gpuspawner.offers.shapes import Memory, OfferError
from gpuspawner.offers.types import (
    Accelerator,
    Choices,
    Default,
    Image,
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
