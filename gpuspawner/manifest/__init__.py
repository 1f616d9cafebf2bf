"""Writes a grant into KubeSpawner's pod."""

from gpuspawner.manifest.apply import PodRules, apply
from gpuspawner.manifest.avoiding import off
from gpuspawner.manifest.errors import ManifestError

__all__ = ["ManifestError", "PodRules", "apply", "off"]
