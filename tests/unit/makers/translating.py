"""A language in which every sentence of the catalogue can be told from other words."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from gettext import NullTranslations

from babel.messages.pofile import read_po

from gpuspawner import language
from gpuspawner.offers.options import NAMES
from gpuspawner.profiles.profile_list import WRITTEN_IN
from tools.catalogue import POT
from tools.pseudo import accented

SENTENCES = {
    text
    for message in read_po(POT.open("rb"))
    for text in ([message.id] if isinstance(message.id, str) else message.id)
}


class Pseudo(NullTranslations):
    """A language that puts each known sentence in brackets, without its placeholders' values."""

    def gettext(self, message: str) -> str:
        assert message in SENTENCES
        return accented(message)

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return self.gettext(msgid1 if n == 1 else msgid2)


@contextmanager
def speaking(tag: str, catalogue: NullTranslations) -> Iterator[None]:
    token = language._current.set((tag, catalogue))
    try:
        yield
    finally:
        language._current.reset(token)


def untranslated(text: str) -> list[str]:
    """The words outside all brackets that are neither units nor names of resources and options."""
    outside = re.sub(r"⟦[^⟦⟧]*⟧", "", text)
    names = "|".join(map(re.escape, (*NAMES, "profile", WRITTEN_IN, "nvidia.com/gpu", "{choice}")))
    return re.findall("[a-z]{2,}", re.sub(rf"{names}|\b[KMG]i?B?\b|null|true|false", "", outside))
