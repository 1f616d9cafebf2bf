"""Tests of what touches the hub, on its and KubeSpawner's main branches.

It is `python -m tests.stock.main_branches`.

JupyterHub's and KubeSpawner's main branches come from GitHub, or from a folder that
$GPUSPAWNER_MAIN_BRANCHES names: `FOLDER/jupyterhub` and `FOLDER/kubespawner`. Their dependencies
are those of the installed releases.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

PROJECTS = ("jupyterhub", "kubespawner")
ROOT = Path(__file__).parents[2]
ROOMS = ("compat", "gates", "kueue", "launch", "line", "policies", "profiles", "reservations")
TESTS = [f"tests/unit/{it}" for it in ROOMS]


def sources(folder: Path) -> list[Path]:
    """Return the source folders; download them into `folder` if necessary."""
    given = os.environ.get("GPUSPAWNER_MAIN_BRANCHES")
    if given:
        return [Path(given) / project for project in PROJECTS]
    for project in PROJECTS:
        url = f"https://github.com/jupyterhub/{project}"
        command = ["git", "clone", "--quiet", "--depth", "1", url, str(folder / project)]
        subprocess.run(command, check=True)
    return [folder / project for project in PROJECTS]


def main() -> None:
    """Run the tests; the exit status is pytest's."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.pathsep.join(str(it) for it in [*sources(Path(folder)), ROOT])
        versions = "; ".join(f"import {it}; print('{it}', {it}.__version__)" for it in PROJECTS)
        environment = {**os.environ, "PYTHONPATH": path}
        subprocess.run([sys.executable, "-c", versions], env=environment, check=True)
        command = [sys.executable, "-m", "pytest", "-q", *TESTS]
        sys.exit(subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode)


if __name__ == "__main__":
    main()
