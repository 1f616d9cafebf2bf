"""A message for users, as plain text and as HTML."""

from dataclasses import dataclass

from markupsafe import Markup, escape


@dataclass(frozen=True, slots=True)
class Message:
    """A message for users.

    Attributes:
        text: The whole message as plain text, because some of the hub's pages show no HTML.
        html: The whole message as safe HTML with only inline elements.
    """

    text: str
    html: Markup

    @classmethod
    def of(cls, lead: str, *rest: str) -> "Message":
        """Make a message of plain sentences; the first one is the most important."""
        following = [sentence for sentence in rest if sentence]
        html = Markup("<strong>{}</strong>").format(lead)
        return cls(" ".join([lead, *following]), Markup(" ").join([html, *map(escape, following)]))
