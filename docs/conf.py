"""Sphinx's configuration; the structure follows https://diataxis.fr."""

from __future__ import annotations

import gpuspawner

project = "gpuspawner"
author = "The gpuspawner developers"
copyright = author
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
autodoc_default_options = {"show-inheritance": False}
# References into other projects would need their inventories, and so the network, at every build.
nitpick_ignore_regex = [
    ("py:.*", r"(collections|enum|typing|types|fractions|datetime|msgspec|traitlets|kubespawner"
              r"|jupyterhub|tornado)\..*"),
]

html_theme = "pydata_sphinx_theme"
html_title = "gpuspawner"
html_theme_options = {"secondary_sidebar_items": ["page-toc"], "show_prev_next": False}
html_copy_source = False

# In a console example, copy the commands and leave the prompts and the output.
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True


def _only_own_traits(app, what, name, member, skip, options):
    """Leave out what GPUSpawner inherits: KubeSpawner's documentation has it."""
    from traitlets import TraitType

    from gpuspawner.spawner import GPUSpawner

    if what == "class" and isinstance(member, TraitType):
        return member.name not in GPUSpawner.class_own_traits(config=True)
    return skip


def setup(app):
    app.connect("autodoc-skip-member", _only_own_traits)
