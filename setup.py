"""What setup.cfg can't say: an index's README, an sdist that is always the same, and a link."""

import gzip
import os
import re
import shutil
import tarfile
import time
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist
from setuptools.config.setupcfg import read_configuration

os.umask(0o022)  # wheels record who may read the files that setuptools writes

METADATA = read_configuration("setup.cfg")["metadata"]


def _for_an_index(readme: str) -> str:
    """Return the README with links and pictures that lead to the repository, at this version."""
    version = METADATA["version"]
    commit = "HEAD" if "dev" in version else version
    repository = METADATA["project_urls"]["Source"]
    text = re.sub(r"(!\[[^]]*\]\()(?!\w+:|#)", rf"\1{repository}/raw/{commit}/", readme)
    return re.sub(r"(\]\()(?!\w+:|#)", rf"\1{repository}/blob/{commit}/", text)


class Sdist(sdist):
    """An archive that depends on its files and SOURCE_DATE_EPOCH only, as wheels do."""

    def make_archive(self, base_name, format, root_dir=None, base_dir=None, **_owner):  # noqa: A002, ARG002, D102
        when = int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))

        def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
            member.mtime, member.uid, member.gid, member.uname, member.gname = when, 0, 0, "", ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            return member

        path = f"{base_name}.tar.gz"
        with (
            gzip.GzipFile(path, "wb", mtime=when) as compressed,
            tarfile.open(fileobj=compressed, mode="w", dereference=True) as archive,
        ):
            for file in sorted(Path(base_dir).rglob("*")):
                archive.add(file, recursive=False, filter=plain)
        return path


class Build(build_py):
    """Where git or zip archives have made a text of the package's link, the values come too."""

    def run(self):  # noqa: D102
        super().run()
        if not self.editable_mode and not Path("gpuspawner/helm-values").is_dir():
            values = Path(self.build_lib) / "gpuspawner" / "helm-values"
            shutil.copytree("helm-values", values, dirs_exist_ok=True)


setup(
    long_description=_for_an_index(Path("README.md").read_text(encoding="utf-8")),
    cmdclass={"build_py": Build, "sdist": Sdist},
)
