"""What Kubernetes says, beside our sentence: one click away, and closed at first."""

from collections.abc import Iterable

from markupsafe import Markup, escape

from gpuspawner.kube.quoting import one_line
from gpuspawner.language import gettext as _
from gpuspawner.messages.words import Message, in_language

_LONGEST = 2000
"""Of a quoted text, in characters."""
_MOST = 20
"""Of the texts with one sentence; the newest ones are shown."""

# The hub's progress page shows each message twice: above, until the next one replaces it, and in
# its log. What is opened above would close by itself, so what may be replaced opens in the log.
_STYLE = Markup(
    "<style>"
    "#progress-message .gpuspawner-passing,"
    "#progress-log .gpuspawner-raw:not(.gpuspawner-passing){display:none}"
    "#progress-message,.progress-log-event,p:has(+.gpuspawner-raw){overflow-wrap:anywhere}"
    ".gpuspawner-raw{font-size:.875rem}"
    ".gpuspawner-raw:not(.gpuspawner-passing){margin:.25rem 0 1rem}"
    ".gpuspawner-raw summary{color:var(--bs-secondary-color);padding:.125rem 0}"
    ".gpuspawner-raw code{color:inherit;display:block;margin:.25rem auto;max-width:42rem;"
    "overflow-wrap:anywhere;text-align:start}"
    "</style>"
)
# After a failure, the hub's progress page still says that the server is starting, and offers
# nothing but to stop it. Its other pages offer to start it again by themselves.
_FAILED_STYLE = Markup(
    "<style>"
    "p:has(~.progress>.bg-danger),#stop-server-btn:has(~#stop-server-status),"
    ".gpuspawner-again{display:none}"
    "#progress-message .gpuspawner-again{display:block;margin:.75rem 0}"
    "</style>"
)
# Who waits in line has no server yet that starts, or that could be stopped.
_LINE_STYLE = Markup(
    "<style>"
    "p:has(~#progress-message .gpuspawner-line),.progress:has(~#progress-message .gpuspawner-line),"
    "body:has(#progress-message .gpuspawner-line) #stop-server-btn,"
    "#progress-log .gpuspawner-line{display:none}"
    "#progress-message:has(.gpuspawner-line) strong"
    "{display:block;font-size:1.5rem;margin:1rem 0 .5rem}"
    ".gpuspawner-line{color:var(--bs-secondary-color);font-size:.875rem}"
    ".gpuspawner-line .btn{display:table;margin:1rem auto}"
    "</style>"
)
# The hub's page adds each message to its log, also one that it has shown before. It keeps the log
# as long as it is open, with the first message in it.
_BEFORE_STYLE = Markup("<style>#progress-log>:has(>.gpuspawner-before){display:none}</style>")


def said_first(message: Message) -> Message:
    """Let the page's log hide what `said_before` repeats."""
    return Message(message.text, message.html + _BEFORE_STYLE)


def said_before(message: Message) -> Message:
    """Repeat a message, because only the progress bar has moved."""
    repeated = Markup('<span class="gpuspawner-before">{}</span>').format(message.html)
    return Message(message.text, repeated)


def with_way_back(message: Message, address: str) -> Message:
    """Let the hub's page of a failed start lead to *address*, where it can be started again."""
    link = Markup(
        '<div class="gpuspawner-again">{}<a class="btn btn-primary" href="{}">{}</a></div>'
    )
    label = in_language(escape(_("Start again")))
    return Message(message.text, message.html + link.format(_FAILED_STYLE, address, label))


def with_line_page(message: Message, advice: str, address: str) -> Message:
    """Let the page of a start that waits in line lead to *address*, where one can leave it.

    *advice* is about the page itself, so only the page says it.
    """
    below = Markup(
        '<div class="gpuspawner-line">{}{}<a class="btn btn-secondary" href="{}">{}</a></div>'
    )
    label = in_language(escape(_("Leave the line, or take something else")))
    said = below.format(_LINE_STYLE, in_language(escape(advice)), address, label)
    return Message(message.text, message.html + said)


def with_details(message: Message, texts: Iterable[str]) -> Message:
    """Add what Kubernetes says to the last message of a start."""
    return _with(message, texts, "gpuspawner-raw")


def with_details_in_log(message: Message, texts: Iterable[str]) -> Message:
    """Add what Kubernetes says to a message that others follow; the page's log shows it."""
    return _with(message, texts, "gpuspawner-raw gpuspawner-passing")


def _with(message: Message, texts: Iterable[str], classes: str) -> Message:
    newest = [text[:_LONGEST] for text in dict.fromkeys(texts) if text][-_MOST:]
    lines = [one_line(line, _LONGEST) for text in newest for line in text.splitlines()]
    if not lines:
        return message
    label = in_language(escape(_("What Kubernetes says")))
    details = Markup('<details class="{}">{}<summary>{}</summary><code>{}</code></details>').format(
        classes, _STYLE, label, Markup("<br>").join(lines)
    )
    return Message(message.text, message.html + details)
