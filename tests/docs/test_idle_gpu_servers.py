"""The how-to about idle GPU servers: its chart values say the same as its Python lines."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from traitlets.config import Config

PAGE = (Path(__file__).parents[2] / "docs/how-to/idle-gpu-servers.md").read_text()
CULLER, SERVICE, *_ = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
[WRITTEN] = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
HUB = yaml.safe_load(WRITTEN)["hub"]


def test_the_culler_reads_the_same_file() -> None:
    file = HUB["extraFiles"]["idle-culler"]

    assert file["stringData"] == CULLER
    assert f"--config={file['mountPath']}" in HUB["services"]["idle-culler"]["command"]


def test_the_culler_has_the_same_rights() -> None:
    c = Config()
    exec(SERVICE, {"c": c})
    [role] = c.JupyterHub.load_roles.get_value([])

    assert HUB["loadRoles"] == {role.pop("name"): role}


def test_the_chart_s_own_culler_is_off() -> None:
    assert yaml.safe_load(WRITTEN)["cull"] == {"enabled": False}
