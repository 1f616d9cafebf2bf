"""Reads what a container's configuration lacks.

Sources: ``pkg/kubelet/kubelet_pods.go``, ``pkg/kubelet/kuberuntime/security_context_others.go`` and
``pkg/volume/{secret,configmap}`` of 1.36.2. Secrets and ConfigMaps may be created after the pod, as
KubeSpawner does for its certificates, so a missing one isn't final.
"""

import re

from gpuspawner.launch.trouble import About, Fault, Kind

_SECRET = re.compile(r'\bsecrets? "([^"]*)" not found')
_CONFIG_MAP = re.compile(r'\bconfigmaps? "([^"]*)" not found')
_KEYS = (
    re.compile(r"couldn't find key (.{1,253}?) in (?:Secret|ConfigMap) "),
    re.compile(r"references? non-existent (?:secret|config) key: (.+)"),
    re.compile(r'environment variable key "([^"]*)" not found'),
)
_ROOT = re.compile(r"runAsNonRoot|breaks non-root policy")


def missing(text: str) -> Fault | None:
    """Return the Secret, ConfigMap or key that a text says is missing; None if it says neither."""
    if found := _SECRET.search(text):
        return Fault(Kind.SECRET_MISSING, About(name=found[1]))
    if found := _CONFIG_MAP.search(text):
        return Fault(Kind.CONFIG_MAP_MISSING, About(name=found[1]))
    for key in _KEYS:
        if found := key.search(text):
            return Fault(Kind.KEY_MISSING, About(name=found[1]))
    return None


def of_config(text: str) -> Fault | None:
    """Read why a container can't be configured; return None if the text isn't known."""
    if _ROOT.search(text):
        return Fault(Kind.RUNS_AS_ROOT, is_final=True)
    return missing(text)
