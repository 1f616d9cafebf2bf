"""What is told of an offer that is not usable."""


class OfferError(ValueError):
    """What an administrator offers is not usable; the hub must not start with it.

    Attributes:
        trait: Name of the trait of GPUSpawner, such as `accelerators`. Empty as long as it is not
            known of which trait the value is a part.
        path: Where in its value, such as `['a100'].counts[1]`; empty for the whole value.
        reason: What is wrong and what is allowed.
    """

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"GPUSpawner.{place}: {reason}")
        self.trait = place.split("[", maxsplit=1)[0].split(".", maxsplit=1)[0]
        self.path = place.removeprefix(self.trait)
        self.reason = reason
