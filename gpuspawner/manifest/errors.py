"""What can be wrong between an accelerator and the pod it is written into."""


class ManifestError(ValueError):
    """An accelerator and the hub's other configuration contradict each other.

    It is the administrator who can mend this, so the text names traits.

    Attributes:
        accelerator: Key of the accelerator.
        reason: What is in the way.
    """

    def __init__(self, accelerator: str, reason: str) -> None:
        super().__init__(f"GPUSpawner.accelerators[{accelerator!r}]: {reason}")
        self.accelerator = accelerator
        self.reason = reason
