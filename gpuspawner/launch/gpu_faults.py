"""Reads what the check of a server's GPUs has found; see `gpuspawner.offers.visible_gpus`."""

import re

from gpuspawner.launch.phrases import beginning
from gpuspawner.launch.trouble import About, Fault, Kind
from gpuspawner.offers.visible_gpus import CONTAINER, FEWER

_FOUND = re.compile(r"gpuspawner: ([0-9]{1,4}) of ([0-9]{1,4}) GPUs visible")


def of_check(container: str, exit_code: int, text: str) -> Fault | None:
    """Return the fault that a container's end tells; None if it isn't the check, or says none.

    It is final: the kubelet would start the check again, with the same devices.
    """
    if container != CONTAINER or exit_code != FEWER:
        return None
    found = _FOUND.search(beginning(text))
    visible, granted = (int(found[1]), int(found[2])) if found else (0, 0)
    return Fault(Kind.GPUS_MISSING, About(granted=granted, visible=visible), is_final=True)
