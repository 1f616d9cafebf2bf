"""The template for translators is that of the source."""

from __future__ import annotations

import pytest

from tools.catalogue import POT, catalogue


@pytest.mark.each_python
def test_the_catalogue_lists_the_sentences_of_the_source() -> None:
    assert POT.read_text() == catalogue(), "run tools/catalogue.py"
