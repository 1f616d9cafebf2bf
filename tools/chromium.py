"""Prints the path of a Chromium for the browser tests, and installs one where it may.

In this order: the path in the variable CHROMIUM; a Chromium or Chrome on PATH; Debian's package,
as root; Playwright's own build. Whatever the installers say goes to standard error.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
HELP = (
    "No Chromium was found and none could be installed. Install one so that `chromium` is on PATH,"
    " or name it: CHROMIUM=/path/to/chromium make test"
)


def main() -> int:
    """Print the path, or say what to do and return 1."""
    path = configured() or on_path() or from_apt() or from_playwright()
    print(path or HELP, file=sys.stdout if path else sys.stderr)
    return 0 if path else 1


def configured() -> str | None:
    """What CHROMIUM names; a path that does not start is the caller's mistake to read about."""
    return os.environ.get("CHROMIUM") or None


def on_path() -> str | None:
    """A browser that is installed already."""
    found = (path for name in NAMES if (path := shutil.which(name)))
    return next((path for path in found if _starts(path)), None)


def from_apt() -> str | None:
    """Debian's package, for whoever may install it; Ubuntu's of that name needs snapd."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return None
    _install("apt-get", "update", "--quiet")
    _install("apt-get", "install", "--yes", "--quiet", "--no-install-recommends", "chromium")
    return on_path()


def from_playwright() -> str | None:
    """The build that Playwright downloads into its own cache."""
    if not _install(sys.executable, "-m", "playwright", "install", "chromium"):
        return None
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if _starts(path) else None


def _install(*command: str) -> bool:
    print("installing Chromium:", *command, file=sys.stderr)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(command, stdout=sys.stderr, env=environment, check=False).returncode == 0


def _starts(path: str) -> bool:
    """Whether it runs at all: Ubuntu's chromium may only say to install a snap."""
    try:
        answer = subprocess.run([path, "--version"], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
