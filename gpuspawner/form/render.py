"""The view of the form to HTML."""

from collections.abc import Sequence
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from gpuspawner.availability import Availability
from gpuspawner.form.build import build
from gpuspawner.form.questions import never, not_free
from gpuspawner.form.view import MOST_LAMPS, Live
from gpuspawner.language import gettext, ngettext, spoken
from gpuspawner.messages import OnForm
from gpuspawner.offers import Offers


def render(
    offers: Offers,
    rows: Sequence[Availability],
    chosen: object = None,
    told: OnForm | None = None,
    live: Live | None = None,
) -> str:
    """Draw the fields of the spawn form; JupyterHub puts its own `<form>` around them.

    Args:
        offers: What is offered.
        rows: How it stands with each accelerator, from `gpuspawner.availability.survey`.
        chosen: Options to begin with: those just sent, or those of the last start. They are
            hostile; of them is kept what is on offer.
        told: Why the last try did not start, and what would.
        live: Where the hub serves what makes the form live; None where it does not.
    """
    view = build(offers, rows, chosen, told, live)
    template = _environment().get_template("form.html")
    return template.render(
        view=view,
        style=_style(),
        spoken=spoken,
        most_lamps=MOST_LAMPS,
        not_free=not_free,
        never=never,
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("gpuspawner.form"),
        autoescape=True,
        extensions=["jinja2.ext.i18n"],
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.install_gettext_callables(gettext, ngettext, newstyle=True)  # type: ignore[attr-defined]
    return environment


@cache
def _style() -> Markup:
    loader = PackageLoader("gpuspawner.form", "static")
    return Markup(loader.get_source(_environment(), "form.css")[0])  # noqa: S704, it is ours
