"""What owners read of servers whose GPUs aren't used. Only `use` loads it."""

from markupsafe import Markup, escape

from gpuspawner.language import gettext as _
from gpuspawner.language import ngettext, sentences
from gpuspawner.messages import words
from gpuspawner.messages.endings import server_named


def warned(server: str, gpus: int, unused: float, left: float, address: str) -> Markup:
    """Warn of a server that will be stopped, and lead to the page on which it can be kept."""
    link = Markup('<a class="text-reset" href="{}">{}</a>').format(address, keep_it())
    return Markup("{} {}").format(will_be_stopped(server, gpus, unused, left), link)


def unused(server: str, gpus: int, seconds: float) -> Markup:
    """Say for how long a server hasn't used its GPUs, which nobody stops it for."""
    text = ngettext(
        "{server} hasn't used its GPU for {unused}.",
        "{server} hasn't used its GPUs for {unused}.",
        gpus,
    )
    return escape(text).format(server=server_named(server), unused=words.duration(round(seconds)))


def will_be_stopped(server: str, gpus: int, unused: float, left: float) -> Markup:
    """Say when a server will be stopped, and why; both times are in seconds."""
    return escape(_gives_back(gpus, left)).format(
        server=server_named(server),
        unused=words.duration(round(unused)),
        left=words.duration(max(60, round(left))),
    )


def _gives_back(gpus: int, left: float) -> str:
    if left:
        return ngettext(
            "{server} hasn't used its GPU for {unused}. It will be stopped in {left}, so that "
            "others can use the GPU. Save your work.",
            "{server} hasn't used its GPUs for {unused}. It will be stopped in {left}, so that "
            "others can use the GPUs. Save your work.",
            gpus,
        )
    return ngettext(
        "{server} hasn't used its GPU for {unused}. It is about to be stopped, so that others can "
        "use the GPU. Save your work.",
        "{server} hasn't used its GPUs for {unused}. It is about to be stopped, so that others "
        "can use the GPUs. Save your work.",
        gpus,
    )


def stays(server: str, kept: float) -> Markup:
    """Say that nobody is about to stop a server, and for how long its owner keeps it; 0 if not."""
    text = (
        _("{server} is kept for {time} from now, whether it uses a GPU or not.")
        if kept > 0
        else _("{server} isn't about to be stopped.")
    )
    return escape(text).format(server=server_named(server), time=words.duration(round(kept)))


def heading() -> str:
    """Name the page with the button."""
    return _("Keep your server")


def keep_it() -> str:
    """Name the button that keeps a server."""
    return _("Keep it")


def keeps(seconds: int, left: int) -> str:
    """Say what the button does, and how often it can be pressed."""
    kept = _("If you keep it, it stays for {time}, whether it uses a GPU or not.").format(
        time=words.duration(seconds)
    )
    often = ngettext(
        "You can do this once.", "You can do this {count} times until it uses its GPU again.", left
    ).format(count=left)
    return sentences(kept, often)


def kept_too_often() -> str:
    """Say why there is no button."""
    return _("You can't keep it any longer. It stays if it uses its GPU again.")
