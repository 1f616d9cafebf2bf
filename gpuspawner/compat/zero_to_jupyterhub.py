"""The values of the Zero-to-JupyterHub chart, if this hub runs in it.

The chart's ``jupyterhub_config.py`` imports the module ``z2jh`` from its own folder, to read the
values with which the chart was rendered (``files/hub/z2jh.py`` in 4.4.0).
"""

import sys

MODULE = "z2jh"


def user_scheduler() -> tuple[str, object] | None:
    """Return the user-scheduler's name and its values; None if the chart doesn't run one here."""
    chart = sys.modules.get(MODULE)
    if chart is None:
        return None
    try:
        values = chart.get_config("scheduling.userScheduler")
        name = chart.get_name("user-scheduler")
    except Exception:  # noqa: BLE001 - another module of this name shows nothing
        return None
    enabled = isinstance(values, dict) and values.get("enabled") is True
    return (str(name), values) if enabled else None
