"""A server that doesn't start, for a reason that its owner can read and act on."""

import logging
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from gpuspawner import messages
from gpuspawner.compat import jupyterhub
from gpuspawner.messages import Message, OnForm
from gpuspawner.options import FieldError
from gpuspawner.quoting import one_line
from gpuspawner.spawn import drafts
from gpuspawner.spawn.host import Host

# No font shows these characters. Drawn anew by each process, so that nobody can name a server so.
_MARK = "".join(secrets.choice("\u2061\u2062\u2063\u2064") for _ in range(16))


class _Said(str):
    """A refusal's text on its way to the log; it is known there by its class."""

    __slots__ = ()


class Refusal(jupyterhub.SpawnError):  # type: ignore[misc]
    """The hub shows ``jupyterhub_message`` on every page on which a spawn can fail.

    Where there is room it shows the HTML; REST answers carry the text.

    Args:
        message: What people read, as text and as HTML.
        reason: A short fixed slug, for metrics and logs (``"busy"``).
        status: The HTTP status, 400 to 499.
        details: What the log has for administrators beside the text.
        on_form: What the form shows that is drawn again; None for the message alone.
    """

    def __init__(
        self,
        message: Message,
        *,
        reason: str,
        status: int = 409,
        details: str = "",
        on_form: OnForm | None = None,
    ) -> None:
        given, named = jupyterhub.spawn_error_arguments(
            message.text, message.html, reason, status, _Said(message.text)
        )
        super().__init__(*given, **named)
        self.text = message.text
        self.slug = reason
        self.details = details
        self.on_form = on_form or OnForm(message)
        self.jupyterhub_message = message.text
        self.jupyterhub_html_message = message.html
        self.is_reported = False

    def __str__(self) -> str:
        return self.text

    def __format__(self, spec: str) -> str:
        """The hub writes it into the text of its own lines, where nothing else is left of it."""
        return f"{self.text}{_MARK}"

    def get_message(self) -> str:
        """What tornado logs of it."""
        return _Said(self.text)


def invalid(errors: tuple[FieldError, ...]) -> Refusal:
    """A refusal because options can't be read."""
    return Refusal(
        messages.correction(errors),
        reason="invalid-options",
        status=400,
        on_form=OnForm.of_errors(errors),
    )


def misconfigured(why: str) -> Refusal:
    """A refusal that only an administrator can do something about, who finds *why* in the log."""
    return Refusal(messages.misconfigured(), reason="misconfigured", details=why)


@contextmanager
def reporting(spawner: Host) -> Iterator[None]:
    """Report a refusal that leaves this block, once: to the log, the form and the hub's count.

    The log gets one line, and the hub's own lines about it are left out: a full cluster is no
    fault of the hub's, and a traceback would say that it is.
    """
    try:
        yield
    except Refusal as refusal:
        if not refusal.is_reported:
            refusal.is_reported = True
            drafts.refuse(refusal.on_form)
            jupyterhub.forgive(spawner)
            _quieten(spawner.log)
            _log(spawner, refusal)
        raise


def _log(spawner: Host, refusal: Refusal) -> None:
    name = one_line(jupyterhub.log_name(spawner))
    line = f"{refusal.text} [{refusal.details}]" if refusal.details else refusal.text
    spawner.log.info("Not starting %s (%s): %s", name, refusal.slug, line)


class _NoEcho(logging.Filter):
    """Leaves out what is written about a refusal after its own line, which has its text alone."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and isinstance(record.exc_info[1], Refusal):
            return False
        written = record.args.values() if isinstance(record.args, Mapping) else record.args or ()
        if any(isinstance(it, Refusal | _Said) for it in written):
            return False
        return _MARK not in str(record.msg)


_no_echo = _NoEcho()


def _quieten(log: logging.Logger) -> None:
    """Put the filter on the handlers of *log*: a logger's own filter misses tornado's lines.

    asyncio logs the task that a slow start's page no longer waits for.
    """
    for handler in log.handlers:
        handler.addFilter(_no_echo)
    logging.getLogger("asyncio").addFilter(_no_echo)
