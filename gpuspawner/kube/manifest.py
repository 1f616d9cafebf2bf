"""The type of plain API objects."""

from collections.abc import Mapping
from typing import Any

Manifest = Mapping[str, Any]
"""A plain object with the API's field names (camelCase), not decoded yet."""
