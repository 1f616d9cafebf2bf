"""`gpuspawner rbac` and `gpuspawner values`: the files of `helm-values/`, made for one hub."""

import re
from collections.abc import Iterator
from importlib.resources import files
from inspect import cleandoc
from typing import NamedTuple

from traitlets import Unicode

from gpuspawner.doctor import terminal
from gpuspawner.doctor.application import Command, UsageError
from gpuspawner.kube.quoting import did_you_mean, listing, quote

WAYS = ("install-image", "install-from-index", "install-from-configmap")
"""In which gpuspawner gets into the hub."""

VALUES = ("gke", "eks", "aks", "on-premises", "choices", "profiles", *WAYS)
"""What can be added to base.yaml."""

CHART = "4.4.0"
"""The version of the chart that the files are written for."""

_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?")
_PLACE = re.compile(f"{_NAME.pattern}/{_NAME.pattern}")
_VERSION = re.compile(r"\d+\.\d+\.\d+[-.\w]*")


class Rbac(Command):
    """Print the rights that a hub needs to read the cluster, for kubectl.

    docs/how-to/rbac.md explains each of them. The argument `minimal` prints the fewest, to read
    nodes and pods, for a cluster with a fixed number of nodes. With these, the hub doesn't check
    volumes.
    """

    name = "rbac"
    description = __doc__
    takes_words = True
    examples = cleandoc("""
        gpuspawner rbac --namespace jhub | kubectl apply --filename -
        gpuspawner rbac minimal --namespace jhub --service-account hub
        gpuspawner rbac --autoscaler-status openshift-machine-api/cluster-autoscaler-status
    """)

    namespace = Unicode("jhub", help="The hub's namespace.").tag(config=True)
    service_account = Unicode("hub", help="The hub's service account.").tag(config=True)
    autoscaler_status = Unicode(
        "kube-system/cluster-autoscaler-status",
        help="The ConfigMap of GPUSpawner.autoscaler_status; minimal has no right to it.",
    ).tag(config=True)

    def run(self) -> int:
        """Print them."""
        if self.extra_args not in ([], ["minimal"]):
            raise UsageError("the only argument is minimal")
        for given in (self.namespace, self.service_account):
            _check(given, _NAME, "a name in Kubernetes")
        _check(self.autoscaler_status, _PLACE, "the namespace and the name of a ConfigMap")
        place, _, status = self.autoscaler_status.partition("/")
        text = _shipped("-".join(["rbac", *self.extra_args]))
        names = {
            "jhub": self.namespace,
            '"hub"': f'"{self.service_account}"',
            '"kube-system"': f'"{place}"',
            '"cluster-autoscaler-status"': f'"{status}"',
        }
        terminal.pass_on(re.sub("|".join(names), lambda found: names[found[0]], text))
        return 0


class Values(Command):
    """Print values for the Zero-to-JupyterHub chart, for Helm.

    They are those of base.yaml. Arguments add files: gke, eks, aks or on-premises for accelerators,
    choices or profiles for what else users choose, and install-image, install-from-index or
    install-from-configmap for the way in which gpuspawner gets into the hub.
    """

    name = "values"
    description = __doc__
    takes_words = True
    examples = cleandoc("""
        gpuspawner values gke install-image > gpuspawner.yaml
        gpuspawner values on-premises install-from-configmap --chart 4.3.5
    """)

    chart = Unicode(CHART, help="The chart's version, and the tag of its hub's image.").tag(
        config=True
    )

    def run(self) -> int:
        """Print them."""
        _check(self.chart, _VERSION, "a version of the chart")
        text = _shipped("base")
        if len(ways := {*WAYS} & {*self.extra_args}) > 1:
            raise UsageError(f"there is one way to install it: name {listing(sorted(ways))}")
        for name in self.extra_args:
            if name not in VALUES:
                known = f"there are {', '.join(VALUES)}"
                raise UsageError(f"no values {quote(name)}{did_you_mean(name, VALUES)}; {known}")
            text = merged(text, _shipped(name))
        # Also in comments with commands, or whoever copies them upgrades the chart unasked. That of
        # install-from-index on hashes is about one image, and stays.
        places = re.compile(rf'(k8s-hub:|tag: "|--chart |--version ){re.escape(CHART)}')
        terminal.pass_on(places.sub(rf"\g<1>{self.chart}", text))
        return 0


def _check(given: str, form: re.Pattern[str], what: str) -> None:
    if not form.fullmatch(given):
        raise UsageError(f"{quote(given)} isn't {what}")


def _shipped(name: str) -> str:
    return (files("gpuspawner") / "helm-values" / f"{name}.yaml").read_text(encoding="utf-8")


class _Entry(NamedTuple):
    """A key of a dictionary in YAML: the comments above it, its line, and the lines below it."""

    comments: str
    line: str
    body: str


def merged(first: str, second: str, indent: str = "") -> str:
    """Merge two files of ours as Helm does, and keep their comments.

    Dictionaries are merged; of anything else, the second file's counts. In both files, each key has
    a line of its own, and each dictionary is two spaces deeper.
    """
    old, new = dict(_entries(first, indent)), dict(_entries(second, indent))
    return "".join(_both(old.get(key), new.get(key), f"{indent}  ") for key in old | new)


def _both(old: _Entry | None, new: _Entry | None, deeper: str) -> str:
    if not (old and new):
        return "".join(old or new or ())
    if not all(any(_entries(it.body, deeper)) for it in (old, new)):
        return "".join(new)
    comments = "\n".join(filter(None, (old.comments, new.comments)))
    return comments + new.line + merged(old.body, new.body, deeper)


def _entries(text: str, indent: str) -> Iterator[tuple[str, _Entry]]:
    pattern = rf"^((?:{indent}#.*\n|\n)*)({indent}([\w./-]+):.*\n)((?:{indent} .*\n|\n)*)"
    for found in re.finditer(pattern, text, re.MULTILINE):
        comments, line, key, body = found.groups()
        yield key, _Entry(comments, line, body)
