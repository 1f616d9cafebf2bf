"""Templates of ours are found behind an administrator's and before the hub's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from jinja2 import (
    BaseLoader,
    ChoiceLoader,
    Environment,
    FileSystemLoader,
    ModuleLoader,
    PrefixLoader,
)
from jupyterhub.app import JupyterHub

from gpuspawner.compat.pages import add_templates


@pytest.mark.parametrize("own", [True, False], ids=["administrators-page", "hubs-page"])
@pytest.mark.parametrize("is_early", [True, False], ids=["before-the-hub", "after-the-hub"])
def test_ours_extends_the_hubs_page_unless_an_administrator_has_one(
    own: bool, is_early: bool, tmp_path: Path
) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "ours").mkdir()
    if own:
        (tmp_path / "theirs/page.html").write_text("theirs")
    (tmp_path / "ours/page.html").write_text("ours")
    hub = JupyterHub(template_paths=[str(tmp_path / "theirs")])
    base = str(Path(hub.data_files_path) / "templates")

    if is_early:
        add_templates(hub, str(tmp_path / "ours"))
    hub.template_paths.append(base)  # as `init_tornado_settings` does
    loader = ChoiceLoader(
        [
            PrefixLoader({"templates": FileSystemLoader([base])}, "/"),
            FileSystemLoader(hub.template_paths),
        ]
    )
    hub.tornado_settings = {"jinja2_env": Environment(loader=loader)}
    if not is_early:
        add_templates(hub, str(tmp_path / "ours"))

    source, _, _ = loader.get_source(hub.tornado_settings["jinja2_env"], "page.html")
    assert source.startswith("theirs" if own else "ours")
    source, _, _ = loader.get_source(hub.tornado_settings["jinja2_env"], "templates/page.html")
    assert "nav_bar_left_items" in source
    source, _, _ = loader.get_source(hub.tornado_settings["jinja2_env"], "home.html")
    assert source


HUBS = FileSystemLoader([str(Path(JupyterHub().data_files_path) / "templates")])


COMPILED = ModuleLoader([])


@pytest.mark.parametrize(
    "loader", [HUBS, ChoiceLoader([HUBS]), COMPILED, ChoiceLoader([COMPILED, HUBS]), None]
)
def test_an_environment_in_which_ours_cannot_extend_the_hubs_stays_as_it_is(
    loader: BaseLoader | None, tmp_path: Path
) -> None:
    """An administrator has made it. Ours would be found there, and break every page."""
    (tmp_path / "page.html").write_text('{% extends "templates/page.html" %}')
    theirs = Environment(loader=loader)

    add_templates(JupyterHub(tornado_settings={"jinja2_env": theirs}), str(tmp_path))

    assert theirs.loader is loader
    assert HUBS.get_source(theirs, "page.html")[1] == f"{HUBS.searchpath[-1]}/page.html"
