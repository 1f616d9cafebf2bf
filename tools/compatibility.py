"""Writes what has just run together into docs/reference/compatibility.md: `tools/nox -s newest`.

It has no dates, so the page changes only if a version does.
"""

from __future__ import annotations

import platform
import re
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from localcluster.toolchains import go

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "compatibility.md"
NONE = "-"

PACKAGES = (
    "jupyterhub",
    "jupyterhub-kubespawner",
    "jupyterhub-fancy-profiles",
    "jupyterhub-usage-quotas",
    "jupyterhub-idle-culler",
    "kubernetes-asyncio",
)
MODULES = {
    "Kubernetes": (".", "k8s.io/kubernetes"),
    "Karpenter": ("karpenter", "sigs.k8s.io/karpenter"),
    "Kueue": ("kueue", "sigs.k8s.io/kueue"),
}


def table(text: str, name: str) -> list[list[str]]:
    """Return the cells of each row between the marks of a table, without its two first lines."""
    lines = _marked(name).search(text)[2].strip().splitlines()  # type: ignore[index]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def with_table(text: str, name: str, rows: list[list[str]]) -> str:
    """Return the page with other rows between the marks of a table."""
    head = _marked(name).search(text)[2].strip().splitlines()[:2]  # type: ignore[index]
    lines = "\n".join([*head, *(f"| {' | '.join(row)} |" for row in rows)])
    return _marked(name).sub(lambda found: f"{found[1]}{lines}\n{found[3]}", text)


def with_hub(rows: list[list[str]], row: list[str]) -> list[list[str]]:
    """Return the rows with this one, instead of that of the same JupyterHub's first number."""
    major = row[0].partition(".")[0]
    return sorted([*(it for it in rows if it[0].partition(".")[0] != major), row])


def _marked(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- {name}: begin -->\n)(.*?)(<!-- {name}: end -->)", re.DOTALL)


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return NONE


def _module(folder: str, path: str) -> list[str]:
    """Return the version that the local cluster builds, and the newest of the module proxy."""
    form = "{{.Version}} {{with .Update}}{{.Version}}{{else}}{{.Version}}{{end}}"
    command = [str(go().command), "list", "-m", "-u", "-f", form, path]
    where = ROOT / "localcluster" / "go" / folder
    done = subprocess.run(command, cwd=where, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.replace("v", "").split()


def main() -> None:
    """Write the page."""
    text = PAGE.read_text()
    row = [*map(_installed, PACKAGES), platform.python_version()]
    text = with_table(text, "hubs", with_hub(table(text, "hubs"), row))
    programs = [[name, *_module(*where)] for name, where in MODULES.items()]
    PAGE.write_text(with_table(text, "programs", programs))
    print("\n".join(f"{name:26} {it}" for name, it in zip((*PACKAGES, "python"), row, strict=True)))


if __name__ == "__main__":
    main()
