"""The reference of the HTTP addresses, compared with those that the hub serves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from jupyterhub.handlers import BaseHandler

from gpuspawner.form.view_model import STATIC
from gpuspawner.use import gpus_page
from gpuspawner.web import handlers

SERVED = (*handlers._HANDLERS, *gpus_page.HANDLERS)
PAGE = (Path(__file__).parents[2] / "docs/reference/http.md").read_text()
FOLDERS = [path.split("/")[2] for path, *_ in handlers._HANDLERS]


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_address_is_in_the_reference(folder: str):
    assert f" /hub/gpuspawner/{folder}/" in PAGE


ROWS = re.findall(r"^\| `\w+ /hub(/[^?`]+).*\| (.*) \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("handler", [it for it in SERVED if issubclass(it[1], BaseHandler)])
def test_an_address_that_takes_no_token_asks_for_a_cookie(handler: tuple[str, type[BaseHandler]]):
    told = [who for path, who in ROWS if re.fullmatch(handler[0], path)]

    assert told
    assert {"cookie" in who for who in told} == {not handler[1]._accept_token_auth}


@pytest.mark.parametrize("name", [path.name for path in STATIC.iterdir()])
def test_every_static_file_is_in_the_reference(name: str):
    assert f"`{name}`" in PAGE
