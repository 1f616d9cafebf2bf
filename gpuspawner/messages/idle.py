"""What owners read of servers whose GPUs aren't used. Only `use` loads it."""

from markupsafe import Markup, escape

from gpuspawner.language import gettext as _
from gpuspawner.language import ngettext
from gpuspawner.messages import words
from gpuspawner.messages.endings import server_named


def warned(server: str, unused: float, left: float, address: str) -> Markup:
    """Warn of a server that will be stopped, and lead to the page on which it can be kept."""
    link = Markup('<a class="text-reset" href="{}">{}</a>').format(address, keep_it())
    return Markup("{} {}").format(will_be_stopped(server, unused, left), link)


def unused(server: str, seconds: float) -> Markup:
    """Say for how long a server hasn't used its GPU, which nobody stops it for."""
    said = escape(_("{server} hasn't used its GPU for {unused}."))
    return said.format(server=server_named(server), unused=words.duration(round(seconds)))


def will_be_stopped(server: str, unused: float, left: float) -> Markup:
    """Say when a server will be stopped, and why; both times are in seconds."""
    return escape(_gives_back(left)).format(
        server=server_named(server),
        unused=words.duration(round(unused)),
        left=words.duration(max(60, round(left))),
    )


def _gives_back(left: float) -> str:
    if left:
        return _(
            "{server} hasn't used its GPU for {unused}. It will be stopped in {left}, so that "
            "others can use the GPU. Save your work."
        )
    return _(
        "{server} hasn't used its GPU for {unused}. It is about to be stopped, so that others can "
        "use the GPU. Save your work."
    )


def stays(server: str) -> Markup:
    """Say that nobody is about to stop a server."""
    said = escape(_("{server} isn't about to be stopped."))
    return said.format(server=server_named(server))


def keep_it() -> str:
    """Name the button that keeps a server."""
    return _("Keep it")


def keeps(seconds: int, left: int) -> str:
    """Say what the button does, and how often it can be pressed."""
    kept = _("It then stays for {time}, even if it doesn't use its GPU.").format(
        time=words.duration(seconds)
    )
    often = ngettext(
        "You can do this once.", "You can do this {count} times until it uses its GPU again.", left
    ).format(count=left)
    return f"{kept} {often}"


def kept_too_often() -> str:
    """Say why there is no button."""
    return _("You can't keep it any longer. It stays if it uses its GPU again.")
