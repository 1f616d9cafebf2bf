"""Objects as the API writes them."""

from collections.abc import Mapping
from typing import Any

Manifest = Mapping[str, Any]
"""An object with the API's own names (camelCase), before anything of it has been read."""
