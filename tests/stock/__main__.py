"""KubeSpawner's own tests, with KubeSpawner and with GPUSpawner: `python -m tests.stock`.

Every test that passes with KubeSpawner must pass with GPUSpawner, and with a class of an
administrator's whose own attributes have the names of GPUSpawner's traits. Then an administrator's
code stands in front of both (`tests.stock.hooked`), and each test must end as with KubeSpawner.

The tests are those of the installed KubeSpawner release. They aren't on PyPI, so they come from its
Git repository, or from a folder that $GPUSPAWNER_KUBESPAWNER_TESTS names: `FOLDER/7.1.0/tests`.

Some need features that the local cluster lacks, for example a program that runs in a pod. They fail
with both spawners and don't count.
"""

import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from localcluster import LocalCluster, Pods
from tests.stock.outcomes import differing, lost, outcomes, passed

REPOSITORY = "https://github.com/jupyterhub/kubespawner"
ROOT = Path(__file__).parents[2]
# The timeout of a test, in seconds; the longest that passes takes 20 s.
SECONDS_A_TEST = 100
STOCK = ()
OURS = ("tests.stock.substituted",)
SHARING = ("tests.stock.shared_names",)
HOOKED = ("tests.stock.hooked",)
# Only a hub ends the progress of a start that its gates have admitted.
NEEDS_A_HUB = ("test_spawner.py::test_spawn_progress",)
# The plugin's classes; it is only for the process of KubeSpawner's tests.
KINDS = ("looking", "failing")


def suite(release: str, folder: Path) -> Path:
    """Return the folder with a release's tests; download them into `folder` if necessary."""
    given = os.environ.get("GPUSPAWNER_KUBESPAWNER_TESTS")
    if given:
        return Path(given) / release / "tests"
    target = folder / release
    command = ["git", "clone", "--quiet", "--depth", "1", "--branch", release, REPOSITORY]
    subprocess.run([*command, str(target)], check=True)
    return target / "tests"


def run(tests: Path, folder: Path, *plugins: str, hooks: str = "") -> dict[str, str]:
    """Run the tests on their own cluster."""
    folder.mkdir()
    report = folder / "report.xml"
    options = [
        *("-c", os.devnull, "--rootdir", str(tests), "-p", "no:cacheprovider", "-q", "--tb=short"),
        *("-o", "asyncio_mode=auto", "-o", "junit_family=xunit1", f"--junitxml={report}"),
        *(f"--timeout={SECONDS_A_TEST}", "--timeout-method=signal"),
        *(f"-p{plugin}" for plugin in plugins),
        *(f"--deselect={test}" for test in NEEDS_A_HUB if hooks),
    ]
    with LocalCluster(folder / "cluster", fleet="single", pods=Pods.REPORT) as cluster:
        environment = {
            **os.environ,
            "KUBECONFIG": str(cluster.kubeconfig),
            "GPUSPAWNER_HOOKS": hooks,
            "PYTHONPATH": str(ROOT),
            # The cluster ends anyway, so there is no need to delete their namespaces first.
            "KUBESPAWNER_DEBUG_NAMESPACE": "1",
        }
        command = [sys.executable, "-m", "pytest", *options, str(tests)]
        subprocess.run(command, cwd=tests, env=environment, check=False)
    return outcomes(report)


def main() -> None:
    """Run the tests with both spawners and compare; exit with 1 if a test was lost."""
    release = version("jupyterhub-kubespawner")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tests = suite(release, folder)
        stock = run(tests, folder / "stock", *STOCK)
        plain = {
            "GPUSpawner": run(tests, folder / "ours", *OURS),
            "names of ours": run(tests, folder / "sharing", *SHARING),
        }
        hooked = {
            kind: (
                run(tests, folder / f"stock-{kind}", *STOCK, *HOOKED, hooks=kind),
                run(tests, folder / f"ours-{kind}", *OURS, *HOOKED, hooks=kind),
            )
            for kind in KINDS
        }
    print(f"\nKubeSpawner {release}, its own {len(stock)} tests:")
    print(f"{len(passed(stock))} pass with KubeSpawner.")
    missed: list[str] = []
    for name, ours in plain.items():
        print(f"{len(passed(ours))} pass with {name}.")
        missed += [
            f"{name}: lost: {test}: {outcome}" for test, outcome in lost(stock, ours).items()
        ]
    for kind, both in hooked.items():
        print(f"With hooks ({kind}), {len(passed(both[0]))} and {len(passed(both[1]))} pass.")
        differences = differing(*both).items()
        missed += [f"{kind}: {test}: {one}, but {other}" for test, (one, other) in differences]
    for line in missed:
        print(f"  {line}")
    if missed or not passed(stock):
        sys.exit(1)


if __name__ == "__main__":
    main()
