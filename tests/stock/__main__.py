"""KubeSpawner's own tests, with KubeSpawner and with GPUSpawner: `python -m tests.stock`.

Every test that passes with KubeSpawner must pass with GPUSpawner. The tests are those of the
installed KubeSpawner release. They aren't on PyPI, so they come from its Git repository, or from a
folder that $GPUSPAWNER_KUBESPAWNER_TESTS names: `FOLDER/7.1.0/tests`.

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
from tests.stock.outcomes import lost, outcomes, passed

REPOSITORY = "https://github.com/jupyterhub/kubespawner"
ROOT = Path(__file__).parents[2]
# The timeout of a test, in seconds; the longest that passes takes 20 s.
SECONDS_A_TEST = 100


def suite(release: str, folder: Path) -> Path:
    """Return the folder with a release's tests; download them into `folder` if necessary."""
    given = os.environ.get("GPUSPAWNER_KUBESPAWNER_TESTS")
    if given:
        return Path(given) / release / "tests"
    target = folder / release
    command = ["git", "clone", "--quiet", "--depth", "1", "--branch", release, REPOSITORY]
    subprocess.run([*command, str(target)], check=True)
    return target / "tests"


def run(tests: Path, folder: Path, *plugins: str) -> dict[str, str]:
    """Run the tests on their own cluster."""
    report = folder / "report.xml"
    options = [
        *("-c", os.devnull, "--rootdir", str(tests), "-p", "no:cacheprovider", "-q", "--tb=short"),
        *("-o", "asyncio_mode=auto", "-o", "junit_family=xunit1", f"--junitxml={report}"),
        *(f"--timeout={SECONDS_A_TEST}", "--timeout-method=signal"),
        *(f"-p{plugin}" for plugin in plugins),
    ]
    with LocalCluster(folder / "cluster", fleet="single", pods=Pods.REPORT) as cluster:
        environment = {
            **os.environ,
            "KUBECONFIG": str(cluster.kubeconfig),
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
        both = []
        for spawner, plugins in (("stock", ()), ("ours", ("tests.stock.substituted",))):
            (folder / spawner).mkdir()
            both.append(run(tests, folder / spawner, *plugins))
    stock, ours = both
    missed = lost(stock, ours)
    print(f"\nKubeSpawner {release}, its own {len(stock)} tests:")
    print(f"{len(passed(stock))} pass with KubeSpawner, {len(passed(ours))} with GPUSpawner.")
    for test, outcome in missed.items():
        print(f"  lost: {test}: {outcome}")
    if missed or not passed(stock):
        sys.exit(1)


if __name__ == "__main__":
    main()
