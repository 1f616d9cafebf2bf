"""The chart as helm sees it: its default values, its schema, and helm's merging of values files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft7Validator

VALUES = Path(__file__).parents[2] / "helm-values"
CLOUDS = ("gke", "eks", "aks", "on-premises")
#: The ways to bring gpuspawner into the hub.
WAYS = ("install-image", "install-from-index", "install-from-configmap")

Values = dict[str, Any]


def read(name: str) -> Values:
    """Return one of our values files, by its name without the suffix."""
    values: Values = yaml.safe_load((VALUES / f"{name}.yaml").read_text())
    return values


def merged(*files: Values) -> Values:
    """Merge files as helm does: dictionaries recursively; later files replace other values."""
    result: Values = {}
    for file in files:
        for key, value in file.items():
            if isinstance(value, dict) and isinstance(result.get(key), dict):
                result[key] = merged(result[key], value)
            else:
                result[key] = value
    return result


class Chart:
    """A folder with the chart's values.yaml and values.schema.json."""

    def __init__(self, folder: Path) -> None:
        self._defaults = yaml.safe_load((folder / "values.yaml").read_text())
        schema = json.loads((folder / "values.schema.json").read_text())
        self._validator = Draft7Validator(schema)

    def values(self, *files: Values) -> Values:
        """Return the values with which helm renders the chart."""
        return merged(self._defaults, *files)

    def faults(self, *files: Values) -> list[str]:
        """Return the schema's errors about these files, as `place: message`."""
        return sorted(
            f"{'.'.join(str(part) for part in error.path)}: {error.message}"
            for error in self._validator.iter_errors(self.values(*files))
        )
