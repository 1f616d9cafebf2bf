"""The exception for a start that is refused, with a message for the server's owner."""

import logging
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from msgspec.structs import replace
from tornado import web

from gpuspawner import messages, runtime
from gpuspawner.compat import jupyterhub
from gpuspawner.compat.database import is_fault
from gpuspawner.kube.quoting import one_line
from gpuspawner.language import ENGLISH, language_tag
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.options import FieldError
from gpuspawner.offers.user_options import GPURequest
from gpuspawner.start import submitted_form
from gpuspawner.start.host import Host, log_name
from gpuspawner.traits.trait_types import setting
from gpuspawner.troubles.facts import Happened

UNREACHABLE = "unreachable"
"""Why a start is refused while the hub can't reach the cluster."""
LEFT = "left-line"
_LONGEST_LINE = 5_000
"""More than a message and what a container may leave in its pod's status, which is 4 KiB."""
# Invisible characters, chosen at random by each process, so that no server's name can contain them.
_MARK = "".join(secrets.choice("\u2061\u2062\u2063\u2064") for _ in range(16))


class _LoggedText(str):
    """A refusal's text in a log record; `_NoEcho` recognizes it by its class."""

    __slots__ = ()


class Refusal(jupyterhub.SpawnError):  # type: ignore[misc]
    """A refused start; the hub shows its message as HTML if the page allows it, else as text.

    `reporting` keeps *on_form* for the form that the hub draws again in the same request
    (`submitted_form`): the form shows it in place of the hub's own banner. REST gets the message as
    text.

    Args:
        reason: A short fixed slug, for metrics and logs (``"busy"``).
        status: 400 to 499, or 503 if nobody can judge right now. By default 409 (Conflict): the
            request conflicts with the cluster's current state.
        details: For administrators; only the log shows them.
        on_form: What the redrawn form shows; by default the message alone.

    Attributes:
        grant: What is refused; None if it can't be told.
    """

    def __init__(
        self,
        message: messages.Message,
        *,
        reason: str,
        status: int = 409,
        details: str = "",
        on_form: messages.OnForm | None = None,
    ) -> None:
        given, named = jupyterhub.spawn_error_arguments(
            message.text, message.html, reason, status, _LoggedText(message.text)
        )
        super().__init__(*given, **named)
        self.text = message.text
        self.slug = reason
        self.details = details
        self.on_form = on_form or messages.OnForm(message)
        self.headers: dict[str, str] = {}  # JupyterHub 5.4.0 to 5.4.2 read those of any HTTPError
        self.jupyterhub_message = message.text
        self.jupyterhub_html_message = message.html
        self.is_reported = False
        self.grant: Grant | None = None

    def __str__(self) -> str:
        return self.text

    def __format__(self, spec: str) -> str:
        """Mark the text: the hub formats a refusal into log lines, and `_NoEcho` drops these."""
        return f"{self.text}{_MARK}"

    def get_message(self) -> str:
        """The text that tornado logs."""
        return _LoggedText(self.text)


def invalid(errors: tuple[FieldError, ...]) -> Refusal:
    """Make the refusal of options that can't be read."""
    return Refusal(
        messages.correction(errors),
        reason="invalid-options",
        status=400,
        on_form=messages.OnForm.of_errors(errors),
    )


def not_offered(request: GPURequest) -> Refusal:
    """Make the refusal of a request that isn't on offer."""
    return Refusal(messages.denied(request), reason="not-offered", status=403)


def misconfigured(why: str) -> Refusal:
    """Make a refusal that only an administrator can fix, who finds *why* in the log."""
    return Refusal(messages.misconfigured(), reason="misconfigured", details=why)


def is_to_pass(error: Exception) -> bool:
    """Whether an error has to reach the hub, and is no bug of ours or of an administrator's code.

    It is a refusal, an answer that an administrator's code gives by an HTTP status, or a fault of
    the hub's database, which `Database.surviving` survives.
    """
    return isinstance(error, Refusal | web.HTTPError) or is_fault(error)


@contextmanager
def about(grant: Grant) -> Iterator[None]:
    """Say what a refusal that leaves this block refuses."""
    try:
        yield
    except Refusal as refusal:
        refusal.grant = refusal.grant or grant
        raise


@contextmanager
def reporting(spawner: Host, ends: Happened = Happened.REFUSED) -> Iterator[None]:
    """Report a refusal that leaves this block once: to the log, form, record, and hub's count.

    The log gets one line instead of the hub's own, whose traceback would look like a failure of
    the hub. *ends* is what the refusal does to the server.
    """
    try:
        yield
    except Refusal as refusal:
        _quieten(spawner.log)
        if not refusal.is_reported:
            refusal.is_reported = True
            shown, made = refusal.on_form, runtime.known(spawner)
            if made and made.line and not made.line.has_place_for(spawner.user.id):
                shown = replace(shown, place=0)
            if page := messages_page(spawner):
                shown = shown.leading_to(f"{page}#{refusal.slug}")
            submitted_form.refuse(shown)
            jupyterhub.forgive(spawner)
            _log(spawner, refusal)
            if made is not None:
                happened = Happened.LEFT if refusal.slug == LEFT else ends
                made.note(happened, spawner, refusal.grant, reason=refusal.slug)
        raise


def messages_page(spawner: Host) -> str:
    """Return the address of `messages_url` in the reader's language, or else in English."""
    pages: str | Mapping[str, str] = setting(spawner, "messages_url")
    if isinstance(pages, str):
        return pages
    return pages.get(language_tag()) or pages.get(ENGLISH, "")


def _log(spawner: Host, refusal: Refusal) -> None:
    line = f"{refusal.text} [{refusal.details}]" if refusal.details else refusal.text
    # It may quote what users write: their servers' names, and the end of a container's log.
    said = one_line(line, _LONGEST_LINE)
    spawner.log.info("Not starting %s (%s): %s", log_name(spawner), refusal.slug, said)


class _NoEcho(logging.Filter):
    """Drops log records about a refusal, except our own line, which has the plain text."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and isinstance(record.exc_info[1], Refusal):
            return False
        written = record.args.values() if isinstance(record.args, Mapping) else record.args or ()
        if any(isinstance(it, Refusal | _LoggedText) for it in written):
            return False
        return _MARK not in str(record.msg)


_no_echo = _NoEcho()


def _quieten(log: logging.Logger) -> None:
    """Put the filter on the handlers of *log*: a logger's own filter misses tornado's lines.

    asyncio's logger gets it too: asyncio logs the task of a slow start if the page stops waiting.
    """
    for handler in log.handlers:
        handler.addFilter(_no_echo)
    logging.getLogger("asyncio").addFilter(_no_echo)
