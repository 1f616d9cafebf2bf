"""Reads a rendered form as a browser without a script does."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

Attributes = list[tuple[str, str | None]]


@dataclass
class Element:
    """An element and the text within it."""

    tag: str
    attributes: dict[str, str | None]
    text: str = ""
    parent: "Element | None" = field(default=None, repr=False)

    def __getitem__(self, name: str) -> str | None:
        return self.attributes.get(name)

    def within(self, other: "Element") -> bool:
        return self is other or (self.parent is not None and self.parent.within(other))


class Page(HTMLParser):
    """All elements in the order of the document."""

    VOID = ("input", "path", "circle", "use", "link", "meta")

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self._open: list[Element] = []
        self.feed(html)
        self.close()
        assert not self._open, f"not closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        parent = self._open[-1] if self._open else None
        self.elements.append(Element(tag, dict(attrs), parent=parent))
        if tag not in self.VOID:
            self._open.append(self.elements[-1])

    def handle_startendtag(self, tag: str, attrs: Attributes) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data

    def all(self, tag: str, **attributes: str) -> list[Element]:
        wanted = attributes.items()
        return [e for e in self.elements if e.tag == tag and wanted <= e.attributes.items()]

    def one(self, tag: str, **attributes: str) -> Element:
        (element,) = self.all(tag, **attributes)
        return element

    def by_id(self, name: str) -> Element:
        (element,) = (e for e in self.elements if e["id"] == name)
        return element

    def submitted(self, accelerator: str | None = None) -> dict[str, list[str]]:
        """Return the fields that a browser sends, perhaps after choosing another accelerator."""
        form: dict[str, list[str]] = {}
        for radio in self.all("input", type="radio"):
            chosen = "checked" in radio.attributes if accelerator is None else None
            if chosen or radio["value"] == accelerator:
                form["accelerator"] = [radio["value"] or ""]
        for select in self.all("select"):
            options = [e for e in self.all("option") if e.within(select)]
            taken = [e for e in options if "selected" in e.attributes] or options
            form[select["name"] or ""] = [taken[0]["value"] or ""]
        return form
