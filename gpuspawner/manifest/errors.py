"""The error for an accelerator that contradicts the pod."""


class ManifestError(ValueError):
    """An accelerator and the hub's other configuration contradict each other.

    The administrator can fix this, so the text names traits.

    Attributes:
        accelerator: Key of the accelerator.
        reason: The contradiction.
    """

    def __init__(self, accelerator: str, reason: str) -> None:
        super().__init__(f"GPUSpawner.accelerators[{accelerator!r}]: {reason}")
        self.accelerator = accelerator
        self.reason = reason
