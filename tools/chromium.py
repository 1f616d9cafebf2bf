"""Prints the path of a Chromium for the browser tests, and installs one if it can.

It tries, in this order, the path in the variable CHROMIUM, a Chromium or Chrome on PATH, Debian's
packages (as root), and Playwright's own build. The installers' output goes to standard error.

Chromium's headless shell comes first: it has no windows, so a page takes it a sixth of the time.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

SHELL = "chromium-headless-shell"
NAMES = (SHELL, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
HELP = (
    "No Chromium was found and none could be installed. Install one so that `chromium` is on PATH,"
    " or name it: CHROMIUM=/path/to/chromium make test"
)


def main() -> int:
    """Print the path and return 0, or print what to do and return 1."""
    path = configured() or on_path() or from_apt() or from_playwright()
    print(path or HELP, file=sys.stdout if path else sys.stderr)
    return 0 if path else 1


def configured() -> str | None:
    """Return the path in CHROMIUM, unchecked: if it is wrong, the caller sees the error."""
    return os.environ.get("CHROMIUM") or None


def on_path() -> str | None:
    """Return the path of a browser that is already on PATH."""
    found = (path for name in NAMES if (path := shutil.which(name)))
    return next((path for path in found if _starts(path)), None)


def from_apt() -> str | None:
    """Install a package of Debian's if we are root; Ubuntu's Chromium needs snapd."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return None
    _install("apt-get", "update", "--quiet")
    install = ("apt-get", "install", "--yes", "--quiet", "--no-install-recommends")
    if not _install(*install, SHELL):
        _install(*install, "chromium")
    return on_path()


def from_playwright() -> str | None:
    """Download Playwright's build into Playwright's cache."""
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
    """Return whether it runs: Ubuntu's chromium may only print a hint to install a snap."""
    try:
        answer = subprocess.run([path, "--version"], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
