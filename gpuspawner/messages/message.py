"""A message for people, as plain text and as HTML."""

from dataclasses import dataclass

from markupsafe import Markup, escape


@dataclass(frozen=True, slots=True)
class Message:
    """What is told to a person.

    Attributes:
        text: Plain text; it stands alone, since some of the hub's pages show no HTML.
        html: The same as safe HTML, of inline elements only.
    """

    text: str
    html: Markup

    @classmethod
    def of(cls, lead: str, *rest: str) -> "Message":
        """A message of sentences in plain text, the first of which says what matters most."""
        following = [sentence for sentence in rest if sentence]
        html = Markup("<strong>{}</strong>").format(lead)
        return cls(" ".join([lead, *following]), Markup(" ").join([html, *map(escape, following)]))
