"""What only some versions of JupyterHub have."""

from __future__ import annotations

import jupyterhub
import pytest

PUT_AND_PATCH = pytest.mark.skipif(
    jupyterhub.version_info[0] < 6, reason="version: JupyterHub 6 brought PUT and PATCH"
)
"""For tests that create or change a server without starting it."""

ANY_NAME = pytest.mark.skipif(
    jupyterhub.version_info[0] > 5, reason="version: JupyterHub 6 refuses names with markup"
)
"""For tests of servers with any name."""
