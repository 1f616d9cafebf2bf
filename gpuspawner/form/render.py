"""The view of the form to HTML."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, lru_cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from gpuspawner.availability import Availability
from gpuspawner.form.questions import never, not_free
from gpuspawner.form.view_builder import build
from gpuspawner.form.view_model import MOST_LAMPS, Live, View
from gpuspawner.language import gettext, language_tag, ngettext
from gpuspawner.messages import OnForm
from gpuspawner.messages.corrections import replaced
from gpuspawner.offers import Offers
from gpuspawner.options import GPURequest, fall_back, user_options


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
    if told is None:
        kept, gone = fall_back({} if chosen is None else chosen, offers)
        view, fields = _untried(offers, tuple(rows), kept, language_tag())
        told_first = (*map(replaced, gone), *view.notices)
        view = replace(view, notices=told_first, live=live)
    else:
        view = build(offers, rows, chosen, told, live)
        fields = _fields(view)
    template = _environment().get_template("form.html")
    return template.render(
        view=view,
        fields=fields,
        style=_style(),
        language_tag=language_tag,
        not_free=not_free,
        never=never,
    )


@lru_cache(64)
def _untried(
    offers: Offers, rows: tuple[Availability, ...], chosen: GPURequest, _language: str
) -> tuple[View, Markup]:
    """The form of whoever has not tried yet: until something changes, the same for many."""
    view = build(offers, rows, user_options(chosen))
    return view, _fields(view)


def _fields(view: View) -> Markup:
    template = _environment().get_template("choices.html")
    return Markup(template.render(view=view, most_lamps=MOST_LAMPS))  # noqa: S704, it is escaped


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("gpuspawner.form"),
        autoescape=True,
        extensions=["jinja2.ext.i18n"],
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        auto_reload=False,
    )
    environment.install_gettext_callables(gettext, ngettext, newstyle=True)  # type: ignore[attr-defined]
    return environment


@cache
def _style() -> Markup:
    loader = PackageLoader("gpuspawner.form", "static")
    return Markup(loader.get_source(_environment(), "form.css")[0])  # noqa: S704, it is ours
