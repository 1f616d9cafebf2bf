"""Writes a grant into the pod that KubeSpawner made."""

from gpuspawner.manifest.apply import PodRules, apply
from gpuspawner.manifest.avoiding import off
from gpuspawner.manifest.errors import ManifestError

__all__ = ["ManifestError", "PodRules", "apply", "off"]
