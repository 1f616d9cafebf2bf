"""Texts that a template may either print into its page, or pass on to a script as JSON."""

from typing import Self


class PageText(str):
    """A text that prints as HTML, and that JSON shows as plain text.

    KubeSpawner's template prints names and descriptions into its page, where they are HTML. Others,
    such as that of jupyterhub-fancy-profiles, pass the profiles to a script, which draws text.
    """

    __slots__ = ("_html",)
    _html: str

    def __new__(cls, text: str, html: str) -> Self:
        """Make a text; *html* says the same."""
        made = super().__new__(cls, text)
        made._html = html
        return made

    def __str__(self) -> str:
        return self._html

    def __html__(self) -> str:
        return self._html

    def __deepcopy__(self, _: object) -> Self:
        """KubeSpawner copies the profiles before it draws them."""
        return self
