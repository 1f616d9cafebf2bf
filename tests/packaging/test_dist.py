"""The sdist, and what both archives say about the project."""

from __future__ import annotations

import os
import re
import tarfile
from importlib.metadata import Distribution
from pathlib import Path

import pytest

import gpuspawner
from tests.packaging.conftest import ROOT, Built, project_files


def names(sdist: Path) -> set[str]:
    with tarfile.open(sdist) as archive:
        return {it.name.partition("/")[2] for it in archive if it.isfile()}


def test_the_sdist_has_every_file_of_the_project(built: Built):
    missing = {path for path in project_files() if not (ROOT / path).is_symlink()}

    assert missing - names(built.sdist) == set()


def test_it_has_the_values_where_the_repository_has_a_link(built: Built):
    found = names(built.sdist)

    assert "helm-values/rbac.yaml" in found
    assert {it for it in found if it.startswith("helm-values/")} == {
        it.removeprefix("gpuspawner/") for it in found if it.startswith("gpuspawner/helm-values/")
    }


def test_it_keeps_which_files_can_be_run(built: Built):
    with tarfile.open(built.sdist) as archive:
        programs = {it.name.partition("/")[2] for it in archive if it.isfile() and it.mode & 0o100}

    assert programs == {".ci/run", "tests/k3s/run", "tools/nox"}


def test_a_second_build_of_the_same_files_is_the_same_to_the_byte(
    built: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    before = os.umask(0o077)  # nor does it depend on who builds, and when
    try:
        second = Built.in_folder(tmp_path)
    finally:
        os.umask(before)

    assert second.sdist.name == built.sdist.name
    assert second.sdist.read_bytes() == built.sdist.read_bytes()
    assert second.wheel.read_bytes() == built.wheel.read_bytes()


def test_the_version_is_the_package_s(metadata: Distribution):
    assert metadata.version == gpuspawner.__version__


def test_the_licence_is_an_expression_and_is_shipped(metadata: Distribution):
    assert metadata.metadata["License-Expression"] == "BSD-3-Clause"
    assert metadata.metadata.get_all("License-File") == ["LICENSE"]


def test_every_address_is_below_that_of_the_source(metadata: Distribution):
    urls = dict(it.split(", ") for it in metadata.metadata.get_all("Project-URL") or [])

    assert {"Source", "Documentation", "Changelog", "Issues"} <= urls.keys()
    assert all(url.startswith(urls["Source"]) for url in urls.values())


def test_the_readme_leads_an_index_s_readers_to_files_that_exist(metadata: Distribution):
    """An index shows it far from the repository, where relative links are dead."""
    urls = dict(it.split(", ") for it in metadata.metadata.get_all("Project-URL") or [])
    text = metadata.metadata.get_payload()
    pictures = re.findall(r"!\[[^]]*\]\((.+?)\)", text)
    links = re.findall(r"(?<!!)\[[^]]*\]\((.+?)\)", text)

    assert all(re.match("https?://|#", it) for it in (*pictures, *links))
    files = {it.partition("/raw/HEAD/")[2] for it in pictures}
    files |= {it.partition("/blob/HEAD/")[2] for it in links if it.startswith(urls["Source"])}
    assert len(files) > 20
    assert {it for it in files if not (ROOT / it.partition("#")[0]).is_file()} == set()


def test_no_file_repeats_the_address_of_the_source(metadata: Distribution):
    urls = dict(it.split(", ") for it in metadata.metadata.get_all("Project-URL") or [])
    text = [it for it in project_files() if it.endswith((".md", ".cfg", ".py", ".yaml", ".yml"))]

    assert [it for it in text if urls["Source"] in (ROOT / it).read_text()] == ["setup.cfg"]
