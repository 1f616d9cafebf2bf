"""The project's checks, each in its own environment (`make help` lists the commands)."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import nox

nox.needs_version = ">=2025.10.14"
nox.options.default_venv_backend = "uv"
nox.options.reuse_venv = "yes"
nox.options.download_python = "never"
nox.options.error_on_missing_interpreters = False  # use the Pythons that the machine has
nox.options.sessions = ["lint", "docs", "unit", "hub", "oldest_hub", "cluster"]

PYTHONS = ["3.11", "3.12", "3.13", "3.14"]

HUBS = {
    # The versions in the newest release of the Zero-to-JupyterHub chart (4.4.0, images/hub).
    "5.5": ("jupyterhub==5.5.0", "jupyterhub-kubespawner==7.0.0"),
    "6.1": ("jupyterhub==6.1.1", "jupyterhub-kubespawner==7.1.0"),
}
NEWEST_HUB = HUBS["6.1"]
# The least that setup.cfg accepts; chart 4.3 has JupyterHub 5.4.
OLDEST_HUB = ("jupyterhub==5.4.0", "jupyterhub-kubespawner==7.0.0")
LINT = ".[lint,nvml,test,browser]"  # mypy checks the tests' fixtures and their imports

UNIT = ("tests/unit", "tests/scheduling")
CLUSTER = (
    "tests/browser",
    "tests/cluster",
    "tests/commands",
    "tests/docs",
    "tests/helm",
    "tests/localcluster",
    "tests/packaging",
    "tests/race",
)

# worksteal keeps neighbouring tests on one worker, so that they share hubs and clusters.
TWO_AT_ONCE = ("-n", "2", "--dist", "worksteal")
# Hub, cluster and browser often wait for each other; on two cores, more workers use that time.
FIVE_AT_ONCE = ("-n", "5", "--dist", "worksteal")
SLOWEST = ("--durations=10", "--durations-min=1")

# The tests start hundreds of hubs and servers as processes. Without compiled modules, each needs
# 9 s to import KubeSpawner alone.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def _show_pyenv_pythons() -> None:
    """Put pyenv's interpreters on PATH; its shims run only the versions chosen for a folder."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    folders = [
        str(folder)
        for folder in sorted(root.glob("versions/3.*/bin"), reverse=True)
        if re.match(r"3\.(\d+)", folder.parent.name)[0] in PYTHONS
    ]
    os.environ["PATH"] = os.pathsep.join([*folders, os.environ["PATH"]])


_show_pyenv_pythons()
# Tests with the mark `one_python` run on this one.
FIRST_PYTHON = next((version for version in PYTHONS if shutil.which(f"python{version}")), None)


def _names_some(session: nox.Session) -> bool:
    """Whether tests are named after `--`."""
    return any(Path(word.partition("::")[0]).exists() for word in session.posargs)


def _pytest(session: nox.Session, *arguments: str, tests: Sequence[str], without: str = "") -> None:
    """Run these tests except those with the mark, or the tests named after `--`."""
    names_some = _names_some(session)
    chosen = session.posargs if names_some else [*tests, *session.posargs]
    left_out = ("-m", f"not {without}") if without and not names_some else ()
    session.run("python", "-m", "pytest", *SLOWEST, *arguments, *left_out, *chosen)


def _lint(session: nox.Session) -> None:
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("lint-imports")
    session.run("mypy")


def _build_control_plane(session: nox.Session) -> None:
    """Build it before the tests, to show its progress and to keep it out of their time limits."""
    session.run("python", "-m", "localcluster", "build")


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, types and layers."""
    session.install("-e", LINT)
    _lint(session)


@nox.session
def check(session: nox.Session) -> None:
    """The quick check: style, types, layers, and the unit tests without the longest."""
    session.install("-e", LINT)
    _lint(session)
    _pytest(session, *TWO_AT_ONCE, tests=UNIT, without="one_python")


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation; warnings are errors."""
    session.install("-e", ".[docs,nvml]")
    session.run("sphinx-build", "-n", "-W", "--keep-going", "-q", "docs", "docs/_build/html")
    session.log("see %s", Path("docs/_build/html/index.html").absolute())


@nox.session(python=PYTHONS)
def unit(session: nox.Session) -> None:
    """Run the unit tests on every Python that the machine has."""
    session.install("-e", ".[test]")
    without = "" if session.python == FIRST_PYTHON else "one_python"
    _pytest(session, *TWO_AT_ONCE, tests=UNIT, without=without)


@nox.session
@nox.parametrize("hub", [nox.param(version, id=version) for version in HUBS])
def hub(session: nox.Session, hub: str) -> None:
    """Run the tests with a real JupyterHub on the local control plane."""
    session.install("-e", ".[test]", *HUBS[hub])
    _build_control_plane(session)
    without = "" if HUBS[hub] == NEWEST_HUB else "one_hub"
    _pytest(session, *FIVE_AT_ONCE, tests=["tests/hub"], without=without)


@nox.session
def oldest_hub(session: nox.Session) -> None:
    """Run the tests of what differs between hubs on the oldest JupyterHub."""
    session.install("-e", ".[test]", *OLDEST_HUB)
    _build_control_plane(session)
    tests = ("tests/unit/compat", "tests/hub/test_existing_hubs.py", "tests/hub/test_refusals.py")
    _pytest(session, *FIVE_AT_ONCE, tests=tests, without="one_hub")


@nox.session
def cluster(session: nox.Session) -> None:
    """Run the tests with the local control plane or Chromium, and those of the package.

    One run of most keeps two cores busy to the end; only those that watch the clock run alone.
    """
    session.install("-e", ".[test,browser]", *NEWEST_HUB)
    session.env["CHROMIUM"] = _chromium(session)
    _build_control_plane(session)
    _pytest(session, *FIVE_AT_ONCE, tests=CLUSTER, without="alone")
    if not _names_some(session):
        session.run("python", "-m", "pytest", *SLOWEST, "-m", "alone", *CLUSTER)


@nox.session
def chart(session: nox.Session) -> None:
    """Install with Helm and the real chart, and run what they install.

    It needs helm and a checkout of the chart's repository that chartpress has filled in.
    """
    session.install("-e", ".[test]", *NEWEST_HUB)
    _build_control_plane(session)
    session.env["GPUSPAWNER_HUB_IMAGE"] = str(_hub_image(session))
    _pytest(session, "-s", tests=["tests/helm"])


@nox.session
def screenshots(session: nox.Session) -> None:
    """Take the documentation's screenshots again."""
    session.install("-e", ".[demo,browser]", *NEWEST_HUB)
    session.env["CHROMIUM"] = _chromium(session)
    _build_control_plane(session)
    session.run("python", "-m", "docs.screenshots")


@nox.session
def simulation(session: nox.Session) -> None:
    """Play people who want GPUs in virtual time, and draw the documentation's plot again."""
    session.install("-e", ".[test,plot]", *NEWEST_HUB)
    session.run("python", "-m", "tests.simulation", "--plot", "docs/images/waiting-times")


@nox.session
def live(session: nox.Session) -> None:
    """Run the long comparison with the real kube-scheduler."""
    session.install("-e", ".[test]", *NEWEST_HUB)
    _build_control_plane(session)
    _pytest(session, "-s", tests=["tests/live"])


@nox.session(python=PYTHONS)
def fuzz(session: nox.Session) -> None:
    """Send hostile REST bodies, on every Python, since their limits differ.

    JupyterHub 5 passes on all valid JSON; JupyterHub 6 itself refuses a third of the bodies.
    """
    session.install("-e", ".[test]", *HUBS["5.5"])
    _build_control_plane(session)
    session.run("python", "-m", "tests.fuzz", *session.posargs)


@nox.session
def attack(session: nox.Session) -> None:
    """Send a thousand hostile requests to a hub while another user starts a server."""
    session.install("-e", ".[test]", *NEWEST_HUB)
    _build_control_plane(session)
    session.run("python", "-m", "tests.attack", *session.posargs)


@nox.session
def race(session: nox.Session) -> None:
    """Let a hundred users race for fifteen GPUs, and fifty for more than their limits allow.

    Meanwhile things go wrong. It takes an hour.
    """
    session.install("-e", ".[test]", *NEWEST_HUB)
    _build_control_plane(session)
    session.run("python", "-m", "tests.race", *session.posargs)


@nox.session
def soak(session: nox.Session) -> None:
    """Run ten thousand spawns with faults, and a thousand that are cut: they leave nothing."""
    session.install("-e", ".[test]", *NEWEST_HUB)
    _build_control_plane(session)
    session.run("python", "-m", "tests.race.cuts")
    session.run("python", "-m", "tests.race.soak", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Run the benchmarks, next to a baseline measured in the same run."""
    session.install("-e", ".[test,plot]", *NEWEST_HUB)
    _build_control_plane(session)
    session.run("python", "-m", "tests.benchmarks", *session.posargs)


@nox.session
@nox.parametrize("hub", [nox.param(version, id=version) for version in HUBS])
def kubespawner(session: nox.Session, hub: str) -> None:
    """Run KubeSpawner's own tests with GPUSpawner, which passes those that KubeSpawner passes."""
    # As old as their fixtures require: later versions write objects and run loops differently.
    theirs = ("kubernetes<33", "kubernetes-asyncio<33", "pytest<8", "pytest-asyncio<0.23")
    session.install("-e", ".[demo]", *HUBS[hub], *theirs, "pytest-timeout")
    _build_control_plane(session)
    session.run("python", "-m", "tests.stock", *session.posargs)


@nox.session
def main_branches(session: nox.Session) -> None:
    """Check the names that gpuspawner uses on JupyterHub's and KubeSpawner's main branches."""
    session.install("-e", ".[test]", *NEWEST_HUB)
    session.run("python", "-m", "tests.stock.main_branches")


@nox.session
def demo(session: nox.Session) -> None:
    """Install the demo's environment; `make demo` then runs the demo."""
    session.install("-e", ".[demo]", *NEWEST_HUB)
    _build_control_plane(session)


def _hub_image(session: nox.Session) -> Path:
    """Make an environment with the packages of the chart's hub image."""
    folder = Path(os.environ["GPUSPAWNER_Z2JH_CHART"]).parent / "images" / "hub"
    base = re.search(r"^FROM python:(3\.\d+)", (folder / "Dockerfile").read_text(), re.MULTILINE)
    image = Path(session.create_tmp()).absolute() / "image"
    session.run("uv", "venv", "--quiet", "--clear", "--seed", "--python", base[1], str(image))
    # It has no wheel, and its headers are not on every machine; only PostgreSQL needs it.
    lines = (folder / "requirements.txt").read_text().splitlines()
    pins = [line for line in lines if re.match(r"\w", line) and not line.startswith("psycopg2")]
    session.run("uv", "pip", "install", "--quiet", "--python", str(image), *pins)
    return image


def _chromium(session: nox.Session) -> str:
    """Return the browser's path; tools/chromium.py installs one if it can."""
    found = session.run("python", "tools/chromium.py", silent=True)
    return found.strip().splitlines()[-1]
