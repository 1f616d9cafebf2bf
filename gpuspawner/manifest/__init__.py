"""Writes a grant into KubeSpawner's pod."""

from gpuspawner.manifest.apply import ManifestError, PodRules, apply, off

__all__ = ["ManifestError", "PodRules", "apply", "off"]
