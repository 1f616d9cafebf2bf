"""Runs hub.Dockerfile without a container engine, in an environment that stands for the image."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

_CONTINUED = re.compile(r"\\\n\s*")


def build(dockerfile: Path, context: Path, image: Path, tmp: Path) -> None:
    """Run the instructions COPY and RUN; *tmp* stands for the image's /tmp.

    Raises:
        AssertionError: A command failed; the message is what it printed.
    """
    lines = _CONTINUED.sub(" ", dockerfile.read_text()).splitlines()
    for line in lines:
        instruction, _, rest = line.partition(" ")
        if instruction == "COPY":
            pattern, target = rest.split()
            assert target == "/tmp/"
            for path in context.glob(pattern):
                shutil.copy(path, tmp)
        elif instruction == "RUN":
            _run(rest.replace("/tmp/", f"{tmp}/"), image)


def installed(image: Path) -> set[str]:
    """Return the packages of the image, with their versions or where they came from."""
    return set(_run("pip freeze", image).splitlines())


def copy_of(image: Path, folder: Path) -> Path:
    """Return an environment that sees the packages of the image and can have more."""
    subprocess.run([image / "bin" / "python", "-m", "venv", folder], check=True)
    (site,) = folder.glob("lib/*/site-packages")
    (packages,) = image.glob("lib/*/site-packages")
    (site / "image.pth").write_text(str(packages))
    # So that the copy runs the image's programs with its own packages.
    (folder / "bin" / "jupyterhub").write_text(
        f"#!{folder}/bin/python\nfrom jupyterhub.app import main\nmain()\n"
    )
    (folder / "bin" / "jupyterhub").chmod(0o755)
    return folder


def _run(command: str, image: Path) -> str:
    path = f"{image / 'bin'}{os.pathsep}{os.defpath}"
    done = subprocess.run(
        ["sh", "-c", command],
        env={**os.environ, "PATH": path, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
