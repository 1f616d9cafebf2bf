"""What a pod's annotations ask to go slowly or wrong on its node."""

from dataclasses import dataclass, replace
from math import inf

from localcluster.agent.api import Object

PREFIX = "localcluster/"
#: As a number of seconds or of times: without end.
FOREVER = "forever"

_DEFAULT_BYTES = "1073741824"


@dataclass(frozen=True)
class Faults:
    """A pod's wishes; those left out happen at once and well.

    Attributes:
        start_after: the seconds that its containers take to be created.
        pull_seconds: those that its images take to be pulled; None if they are on the node already.
        pull_bytes: the size of its images.
        pull_error: why pulling fails, a key of `localcluster.agent.registry.ERRORS`; or "".
        pull_error_times: how often it fails before it works.
        attach_seconds: those that its volumes take to be attached; None if they need not be.
        attached_elsewhere_seconds: how long a node that is gone keeps its volumes.
        attach_error, attach_error_seconds: why attaching fails, and for how long.
        mount_error, mount_error_seconds: why mounting fails, and for how long.
        device_error: why the kubelet can't give it devices, a key of `admission.DEVICE_ERRORS`.
        create_error, run_error: what the container runtime says instead of creating or starting.
        exits_after: the seconds after which its containers end, if their processes haven't ended by
            then; None if they end by themselves, and as they like.
        exit_code, exit_reason, exit_output: how they end then, and the last that they print.
        exit_times: how often they end so.
        hangs: whether they run without doing anything.
        uses: how much each uses of what its node runs short of, as the kubelet writes it.
    """

    start_after: float
    pull_seconds: float | None
    pull_bytes: int
    pull_error: str
    pull_error_times: float
    attach_seconds: float | None
    attached_elsewhere_seconds: float
    attach_error: str
    attach_error_seconds: float
    mount_error: str
    mount_error_seconds: float
    device_error: str
    create_error: str
    run_error: str
    exits_after: float | None
    exit_code: int
    exit_reason: str
    exit_output: str
    exit_times: float
    hangs: bool
    uses: str

    def of_init_containers(self) -> "Faults":
        """Return those that don't only concern the pod's server."""
        return replace(self, create_error="", run_error="", exits_after=None, hangs=False)


def faults_of(pod: Object) -> Faults:
    """Read a pod's annotations.

    Raises:
        ValueError: one of them should be a number.
    """
    asked = pod["metadata"].get("annotations", {})

    def text(name: str, default: str = "") -> str:
        return str(asked.get(PREFIX + name, default))

    def number(name: str, default: str) -> float:
        value = text(name, default)
        return inf if value == FOREVER else float(value)

    def given(name: str) -> float | None:
        return number(name, "0") if PREFIX + name in asked else None

    return Faults(
        start_after=number("start-after", "0"),
        pull_seconds=given("pull-seconds"),
        pull_bytes=int(text("pull-bytes", _DEFAULT_BYTES)),
        pull_error=text("pull-error"),
        pull_error_times=number("pull-error-times", FOREVER),
        attach_seconds=given("attach-seconds"),
        attached_elsewhere_seconds=number("attached-elsewhere-seconds", "0"),
        attach_error=text("attach-error"),
        attach_error_seconds=number("attach-error-seconds", FOREVER),
        mount_error=text("mount-error"),
        mount_error_seconds=number("mount-error-seconds", FOREVER),
        device_error=text("device-error"),
        create_error=text("create-error"),
        run_error=text("run-error"),
        exits_after=given("exits-after"),
        exit_code=int(text("exit-code", "1")),
        exit_reason=text("exit-reason"),
        exit_output=text("exit-output"),
        exit_times=number("exit-times", FOREVER),
        hangs=text("hangs") == "true",
        uses=text("uses"),
    )
