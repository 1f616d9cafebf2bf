"""Sphinx's configuration; the structure follows https://diataxis.fr."""

from __future__ import annotations

from sphinx.application import Sphinx
from traitlets import TraitType

import gpuspawner
from gpuspawner.spawner import GPUSpawner

project = "gpuspawner"
author = copyright = "The gpuspawner developers"
version = release = gpuspawner.__version__

extensions = [
    "autodoc_traits",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
exclude_patterns = ["_build"]

default_role = "code"
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
# Other projects' inventories would need the network at every build.
OTHERS = "collections enum fractions jupyterhub kubespawner msgspec tornado traitlets types typing"
nitpick_ignore_regex = [("py:.*", rf"({'|'.join(OTHERS.split())}|t)\..*")]
# Docstrings use the short names of these.
nitpick_ignore = [("py:attr", "user_options"), ("py:exc", "OfferError")]

html_theme = "pydata_sphinx_theme"
html_title = "gpuspawner"
html_theme_options = {"secondary_sidebar_items": ["page-toc"], "show_prev_next": False}
html_copy_source = False

# In a console example, copy the commands and leave the prompts and the output.
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True


def setup(app: Sphinx) -> None:
    """Document only our own traits: KubeSpawner's documentation has the others."""
    app.connect("autodoc-skip-member", skip_inherited_traits)


def skip_inherited_traits(*event: object) -> bool:
    """Return whether to leave a member out."""
    _app, _kind, _name, member, skip, _options = event
    if isinstance(member, TraitType):
        return member.name not in GPUSpawner.class_own_traits(config=True)
    return bool(skip)
