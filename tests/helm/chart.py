"""The chart as helm sees it: default values, schema, and how helm merges files over them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft7Validator

VALUES = Path(__file__).parents[2] / "helm-values"
CLOUDS = ("gke", "eks", "aks", "on-premises")

Values = dict[str, Any]


def read(name: str) -> Values:
    """One of our files, by its name without the ending."""
    values: Values = yaml.safe_load((VALUES / f"{name}.yaml").read_text())
    return values


def merged(*files: Values) -> Values:
    """Several files as helm merges them: dictionaries in depth, everything else replaced."""
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

    def faults(self, *files: Values) -> list[str]:
        """What the schema says of these files, as `place: message`; empty if all is well."""
        values = merged(self._defaults, *files)
        return sorted(
            f"{'.'.join(str(part) for part in error.path)}: {error.message}"
            for error in self._validator.iter_errors(values)
        )
