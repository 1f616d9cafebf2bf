"""The project's checks, each in its own environment (`make help` lists the commands)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import nox

nox.needs_version = ">=2025.10.14"
nox.options.default_venv_backend = "uv"
nox.options.reuse_venv = "yes"
nox.options.download_python = "never"
nox.options.error_on_missing_interpreters = False  # use the Pythons that the machine has
nox.options.sessions = ["lint", "docs", "unit", "cluster", "newest_hub", "oldest_hub"]

PYTHONS = ["3.11", "3.12", "3.13", "3.14"]

# The versions in the newest release of the Zero-to-JupyterHub chart (4.4.0, images/hub).
CHART_HUB = ("jupyterhub==5.5.0", "jupyterhub-kubespawner==7.0.0")
NEWEST_HUB = ("jupyterhub==6.1.1", "jupyterhub-kubespawner==7.1.0")
# The least that setup.cfg accepts; chart 4.3 has JupyterHub 5.4.
OLDEST_HUB = ("jupyterhub==5.4.0", "jupyterhub-kubespawner==7.0.0")
HUBS = {"5.5": CHART_HUB, "6.1": NEWEST_HUB}
# The newest releases, whatever they are; usage-quotas 0.2 needs JupyterHub 6.
NEWEST_RELEASES = {
    "5": ("jupyterhub<6",),
    "6": ("jupyterhub<7", "jupyterhub-usage-quotas>=0.2"),
}
LINT = ".[lint,nvml,test,browser]"  # mypy checks the tests' fixtures and their imports

UNIT = ("tests/unit", "tests/scheduling")
CLUSTER = (
    "tests/browser",
    "tests/cluster",
    "tests/doctor",
    "tests/docs",
    "tests/helm",
    "tests/hub",
    "tests/localcluster",
    "tests/packaging",
    "tests/race",
)

# At night, everything runs on both hubs, and the unit tests on every Python (tools/nightly.py).
NIGHT = bool(os.environ.get("GPUSPAWNER_NIGHT"))
TWO_AT_ONCE = ("-n", "2", "--dist", "worksteal")
# Tests that share a cluster or a hub run in the same worker.
GROUPED = ("--dist", "loadgroup")
# Hub, cluster and browser often wait for each other; on two cores, more workers use that time.
FOUR_AT_ONCE = ("-n", "4", *GROUPED)
# Each worker starts a cluster, which takes longer than it saves where tests are few.
THREE_AT_ONCE = ("-n", "3", *GROUPED)
# Their clusters are small, so the control planes' garbage may lie for longer (Go's runtime).
SMALL_CLUSTERS = {"GOGC": "400"}
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
# All tests run on this one, and those with the mark `each_python` on the others.
FOUND_PYTHONS = [version for version in PYTHONS if shutil.which(f"python{version}")]
FIRST_PYTHON = FOUND_PYTHONS[0] if FOUND_PYTHONS else None
NEWEST_PYTHON = FOUND_PYTHONS[-1] if FOUND_PYTHONS else None


def _pytest(
    session: nox.Session, *arguments: str, tests: Sequence[str], marked: Sequence[str] = ()
) -> None:
    """Run these tests, or those that are named after `--`, whatever marks they have.

    Args:
        session: The session.
        arguments: More arguments for pytest.
        tests: Files and folders.
        marked: What pytest's `-m` has to find true: all of them.
    """
    if any(Path(word.partition("::")[0]).exists() for word in session.posargs):
        chosen = session.posargs
    else:
        chosen = [*tests, *session.posargs]
        if marked:
            chosen += ["-m", " and ".join(marked)]
    session.run("python", "-m", "pytest", *SLOWEST, *arguments, *chosen)


def _with_clusters(
    session: nox.Session, *arguments: str, tests: Sequence[str], marked: Sequence[str] = ()
) -> None:
    """Run tests with hubs and clusters, as `_pytest` does."""
    session.env.update(SMALL_CLUSTERS)
    _pytest(session, *arguments, tests=tests, marked=marked)


def _where_marked(mark: str) -> list[str]:
    """Return the files whose tests have a mark: to collect all others takes each worker a while.

    Where conftest.py has it, so has its whole folder.
    """
    files = [it for it in sorted(Path("tests").rglob("*.py")) if f"mark.{mark}" in it.read_text()]
    return [str(it.parent if it.name == "conftest.py" else it) for it in files]


def _by_day(*marked: str) -> Sequence[str]:
    """Return these marks and that of nightly tests, for `_pytest`; at night, everything runs."""
    return () if NIGHT else (*marked, "not nightly")


def _lint(session: nox.Session) -> None:
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("lint-imports")
    session.run("mypy")
    session.run("zizmor", "--quiet", "--offline", ".github")


def _build_control_plane(session: nox.Session, *also: str) -> None:
    """Build it before the tests, to show its progress and to keep it out of their time limits.

    Args:
        session: The session.
        also: `karpenter` or `kueue`, if tests run them.
    """
    session.run("python", "-m", "localcluster", "build", *also)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, types and layers."""
    session.install("-e", LINT)
    _lint(session)


@nox.session
def check(session: nox.Session) -> None:
    """The quick check: style, types, layers, and the unit tests on one Python."""
    session.install("-e", LINT, *CHART_HUB)
    _lint(session)
    _pytest(session, *TWO_AT_ONCE, tests=UNIT, marked=["not nightly"])


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation; warnings are errors."""
    session.install("-e", ".[docs,nvml]")
    session.run("sphinx-build", "-n", "-W", "--keep-going", "-q", "docs", "docs/_build/html")
    session.log("see %s", Path("docs/_build/html/index.html").absolute())


@nox.session(python=PYTHONS)
def unit(session: nox.Session) -> None:
    """Run the unit tests on the first Python, and on the others what can differ there."""
    session.install("-e", ".[test]", *CHART_HUB)
    if NIGHT or session.python == FIRST_PYTHON:
        _pytest(session, *TWO_AT_ONCE, tests=UNIT, marked=_by_day())
    else:
        tests = _where_marked("each_python")
        _pytest(session, *TWO_AT_ONCE, tests=tests, marked=_by_day("each_python"))


@nox.session(python=FIRST_PYTHON)
def cluster(session: nox.Session) -> None:
    """Run the tests with a hub, a cluster or a browser, and those of the package.

    One run of all keeps two cores busy to the end.
    """
    _prepare_for_all(session, *CHART_HUB)
    _with_clusters(session, *FOUR_AT_ONCE, tests=CLUSTER, marked=_by_day())


@nox.session(python=FIRST_PYTHON)
def newest_hub(session: nox.Session) -> None:
    """Run on the newest JupyterHub what differs between hubs, and at night everything."""
    if NIGHT:
        _prepare_for_all(session, *NEWEST_HUB)
        _with_clusters(session, *FOUR_AT_ONCE, tests=(*UNIT, *CLUSTER))
        return
    session.install("-e", ".[test]", *NEWEST_HUB)
    _build_control_plane(session)
    tests = _where_marked("each_hub")
    _with_clusters(session, *THREE_AT_ONCE, tests=tests, marked=_by_day("each_hub"))


@nox.session(python=FIRST_PYTHON)
def oldest_hub(session: nox.Session) -> None:
    """Run the tests of what differs between hubs on the oldest JupyterHub."""
    session.install("-e", ".[test]", *OLDEST_HUB)
    _build_control_plane(session)
    tests = (
        "tests/unit/compat",
        "tests/hub/gates/test_existing_hubs.py",
        "tests/hub/gates/test_refusals.py",
    )
    _with_clusters(session, *THREE_AT_ONCE, tests=tests, marked=_by_day())


@nox.session
def dist(session: nox.Session) -> None:
    """Build the sdist, and the wheel from it, in dist/: of one commit, always the same."""
    _build_dist(session)


@nox.session
def sbom(session: nox.Session) -> None:
    """List in build/sbom.cdx.json what pip installs with the wheel in dist/."""
    [wheel] = Path("dist").glob("*.whl")
    session.install("cyclonedx-bom")
    installed = str(_folder(session) / "installed")
    session.run("uv", "venv", "--quiet", "--clear", installed)
    session.run("uv", "pip", "install", "--quiet", "--python", installed, str(wheel))
    Path("build").mkdir(exist_ok=True)
    options = ("--output-reproducible", "--output-file", "build/sbom.cdx.json")
    session.run("cyclonedx-py", "environment", *options, installed)


@nox.session(python=FIRST_PYTHON)
def wheel_test(session: nox.Session) -> None:
    """Run the unit, hub and browser tests with the wheel, from the sdist without the package."""
    sdist, wheel = _build_dist(session)
    session.install(f"{wheel}[test,browser]", *CHART_HUB)
    session.env["CHROMIUM"] = _chromium(session)
    _build_control_plane(session, "kueue")
    with session.chdir(_unpacked(session, sdist)):
        for path in Path("gpuspawner").iterdir():
            if path.name != "locale":  # its template is for translators, and in no wheel
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        # Those of `suite` are about the repository, and need the package's source.
        tests = (*UNIT, "tests/hub", "tests/browser", "--ignore=tests/unit/suite")
        _with_clusters(session, *FOUR_AT_ONCE, tests=tests, marked=_by_day())


@nox.session(python=FIRST_PYTHON)
def chance(session: nox.Session) -> None:
    """Run the tests of `cluster` again and again, on a machine with a trouble."""
    _prepare_for_all(session, *CHART_HUB)
    session.env.update(SMALL_CLUSTERS)
    trouble, runs, *tests = session.posargs
    tests = tests or [*CLUSTER, "-m", "not nightly"]
    command = ("python", "-m", "pytest", *FOUR_AT_ONCE, *tests)
    session.run("python", "tools/chance.py", trouble, runs, "--", *command)


@nox.session
def chart(session: nox.Session) -> None:
    """Install with Helm and the real chart, and run what they install.

    It needs helm and a checkout of the chart's repository that chartpress has filled in.
    """
    chart = Path(os.environ.get("GPUSPAWNER_Z2JH_CHART", "."), "..", "images", "hub", "Dockerfile")
    if not (chart.exists() and shutil.which("helm")):
        session.skip("no source: CONTRIBUTING.md says how to get helm and the chart, and name them")
    session.install("-e", ".[test]", *NEWEST_HUB)
    _build_control_plane(session)
    session.env["GPUSPAWNER_HUB_IMAGE"] = str(_hub_image(session))
    _pytest(session, "-s", tests=["tests/helm"])


@nox.session
def screenshots(session: nox.Session) -> None:
    """Take the documentation's screenshots again."""
    session.install("-e", ".[test,browser]", *NEWEST_HUB)
    session.env["CHROMIUM"] = _chromium(session)
    _build_control_plane(session)
    session.run("python", "-m", "docs.screenshots")


@nox.session
def simulation(session: nox.Session) -> None:
    """Play people who want GPUs in virtual time, and draw the documentation's plot again."""
    session.install("-e", ".[test,plot]", *NEWEST_HUB)
    session.run("python", "-m", "tests.simulation", "--plot", "docs/images/waiting-times")
    session.run("python", "-m", "tests.simulation.idle")


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
    """Send a thousand hostile requests to a hub while another user starts a server.

    Then its database fails while a dozen people in line are called.
    """
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
    _need_source(session, "GPUSPAWNER_KUBESPAWNER_TESTS", "kubespawner")
    # As old as their fixtures require: later versions write objects and run loops differently.
    theirs = ("kubernetes<33", "kubernetes-asyncio<33", "pytest<8", "pytest-asyncio<0.23")
    session.install("-e", ".[demo]", *HUBS[hub], *theirs, "pytest-timeout")
    _build_control_plane(session)
    session.run("python", "-m", "tests.stock", *session.posargs)


@nox.session
def main_branches(session: nox.Session) -> None:
    """Check the names that gpuspawner uses on JupyterHub's and KubeSpawner's main branches."""
    _need_source(session, "GPUSPAWNER_MAIN_BRANCHES", "jupyterhub", "kubespawner")
    session.install("-e", ".[test]", *NEWEST_HUB)
    session.run("python", "-m", "tests.stock.main_branches")


@nox.session(python=NEWEST_PYTHON)
@nox.parametrize("hub", [nox.param(major, id=major) for major in NEWEST_RELEASES])
def newest(session: nox.Session, hub: str) -> None:
    """Run a hub with the newest release of all that hubs have, and write that into the docs."""
    companions = ("jupyterhub-kubespawner", "jupyterhub-fancy-profiles", "jupyterhub-idle-culler")
    session.install("--upgrade", "-e", ".[test]", *NEWEST_RELEASES[hub], *companions)
    _build_control_plane(session)
    _with_clusters(session, tests=["tests/hub/gates/test_companions.py"])
    session.run("python", "-m", "tools.compatibility")


@nox.session(python=FIRST_PYTHON)
def mutations(session: nox.Session) -> None:
    """Break the package in known ways, and see that the tests named with each notice it."""
    _prepare_for_all(session, *CHART_HUB)
    session.run("python", "-m", "tests.mutations", *session.posargs)


@nox.session(venv_backend="none")
def nightly(session: nox.Session) -> None:
    """Run everything, part by part, and continue a run that was stopped."""
    session.run(sys.executable, "tools/nightly.py", *session.posargs, external=True)


@nox.session
def demo(session: nox.Session) -> None:
    """Install the demo's environment; `make demo` then runs the demo."""
    session.install("-e", ".[demo]", *NEWEST_HUB)
    _build_control_plane(session)


def _prepare_for_all(session: nox.Session, *hub: str) -> None:
    """Install and build what the tests with a hub, a cluster or a browser need."""
    session.install("-e", f".[test,browser{',postgresql' if NIGHT else ''}]", *hub)
    session.env["CHROMIUM"] = _chromium(session)
    _build_control_plane(session, "kueue", *(["karpenter"] if NIGHT else []))


def _build_dist(session: nox.Session) -> tuple[Path, Path]:
    """Build into dist/, and check what a package index would; return the sdist and the wheel."""
    session.install("build", "twine")
    shutil.rmtree("dist", ignore_errors=True)
    session.env["SOURCE_DATE_EPOCH"] = _source_date(session)
    session.run("python", "-m", "build", "--quiet")
    [sdist], [wheel] = Path("dist").glob("*.tar.gz"), Path("dist").glob("*.whl")
    session.run("twine", "check", "--strict", str(sdist), str(wheel))
    return sdist.absolute(), wheel.absolute()


def _source_date(session: nox.Session) -> str:
    """Return the time of the last commit; of an unpacked sdist, that of its files."""
    if Path("PKG-INFO").exists():
        return str(int(Path("PKG-INFO").stat().st_mtime))
    command = ("git", "log", "-1", "--format=%ct")
    return str(session.run(*command, external=True, silent=True)).strip()


def _folder(session: nox.Session) -> Path:
    """Return the session's own folder, and leave temporary files in the machine's.

    A hub's sockets need paths of at most 107 characters.
    """
    folder = Path(session.create_tmp()).absolute()
    session.env.pop("TMPDIR", None)  # nox sets it to this folder
    return folder


def _unpacked(session: nox.Session, sdist: Path) -> Path:
    folder = _folder(session) / "sdist"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.unpack_archive(sdist, folder, filter="data")
    [root] = folder.iterdir()
    return root


def _need_source(session: nox.Session, variable: str, *projects: str) -> None:
    """Skip a session whose sources nobody has named and which can't be cloned from here."""
    if os.environ.get(variable):
        return
    for project in projects:
        command = ["git", "ls-remote", f"https://github.com/jupyterhub/{project}", "HEAD"]
        try:
            found = subprocess.run(command, capture_output=True, timeout=60, check=False)  # noqa: S603
        except subprocess.TimeoutExpired:
            found = None
        if found is None or found.returncode:
            session.skip(f"no source: name a clone of {project} in {variable} (CONTRIBUTING.md)")


def _hub_image(session: nox.Session) -> Path:
    """Make an environment with the packages of the chart's hub image."""
    folder = Path(os.environ["GPUSPAWNER_Z2JH_CHART"]).parent / "images" / "hub"
    base = re.search(r"^FROM python:(3\.\d+)", (folder / "Dockerfile").read_text(), re.MULTILINE)
    image = _folder(session) / "image"
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
