"""Keeps KubeSpawner looking for the home directories of its versions before 7, until it has looked.

These named the claims of some users in another way. KubeSpawner looks for such a claim when it
ensures the home directory of somebody whose stored state says no version, and stores the version
from then on (``load_state``, ``get_state`` and ``_start`` in ``kubespawner/spawner.py`` of 7.0.0
and 7.1.0). A start that ends earlier also stores it, as each refusal does. The next start would
make a new, empty home directory.
"""

from collections.abc import Mapping
from typing import Any

_VERSION = "kubespawner_version"


def until_looked_for(spawner: Any, state: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what to store of a server: no version before KubeSpawner has looked for its home."""
    # A later KubeSpawner may no longer look, and lack these names.
    is_of_old_version = getattr(spawner, "_state_kubespawner_version", None) == "unknown"
    is_found = getattr(spawner, "_pvc_exists", True)
    if not (is_of_old_version and spawner.storage_pvc_ensure) or is_found:
        return state
    return {name: value for name, value in state.items() if name != _VERSION}
