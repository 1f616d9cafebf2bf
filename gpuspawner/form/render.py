"""Renders the form as HTML."""

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from msgspec.structs import replace

from gpuspawner.form.alternative_button import profile_value
from gpuspawner.form.view_builder import REMARKS, ViewBuilder, notice, profile_buttons
from gpuspawner.form.view_model import MOST_LAMPS, AboveTheForm, LineView, LiveAddresses, View
from gpuspawner.language import direction, gettext, language_tag, ngettext
from gpuspawner.messages import OnForm, login_ended, no_download, stale
from gpuspawner.messages.on_form import replaced
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.user_options import GPURequest, fall_back, user_options
from gpuspawner.preflight.availability import Availability


def render(
    offers: Offers,
    rows: Sequence[Availability],
    chosen: object = None,
    told: OnForm | None = None,
    live: LiveAddresses | None = None,
    usage: AboveTheForm | None = None,
    no_gpus: Sequence[str] = (),
) -> str:
    """Render the fields of the spawn form; JupyterHub puts its own `<form>` around them.

    The form first selects the *chosen* options: those just sent, or those of the last start. They
    are untrusted; those that aren't offered are dropped. After a refusal, *told* has its texts.
    *no_gpus* is as in `Entitlement`.
    """
    notices = tuple(no_gpus or filter(None, [notice(rows)]))
    if told is None:
        kept, gone = fall_back(chosen, offers)
        view, cards, sizes = _untried(offers, tuple(rows), kept, language_tag())
        notices = (*map(replaced, gone), *notices)
    else:
        view = ViewBuilder(offers, rows, chosen, told).view()
        cards, sizes = _drawn(view)
    template = environment().get_template("form.html")
    return template.render(
        view=replace(view, notices=notices, live=live, usage=usage),
        cards=cards,
        sizes=sizes,
        words=_words(language_tag()),
        style=_style(live),
    )


def render_refusal(
    told: OnForm, live: LiveAddresses | None, chosen: Mapping[str, object] | None = None
) -> str:
    """Render a refusal of *chosen* profiles, with a button for each alternative, above a form."""
    template = environment().get_template("refusal.html")
    view = View(
        message=told.message.html,
        is_wrong=any(it.label for it in told.errors),
        alternatives=profile_buttons(told),
        wait=told.wait,
        wait_for=profile_value(chosen or {}),
    )
    return template.render(view=view, style=_style(live))


def render_line(view: LineView) -> str:
    """Render the page of somebody who waits in line."""
    template = environment().get_template("line.html")
    return template.render(view=view, style=_style(view.live))


def render_usage(usage: AboveTheForm, live: LiveAddresses | None) -> str:
    """Render what policies leave to the user, above a form of others."""
    template = environment().get_template("usage_alone.html")
    return template.render(view=View(usage=usage), style=_style(live))


@lru_cache(64)
def _untried(
    offers: Offers, rows: tuple[Availability, ...], chosen: GPURequest, _language: str
) -> tuple[View, Markup, Markup]:
    """Render the form of users without a refusal; it is often the same for many of them."""
    view = ViewBuilder(offers, rows, user_options(chosen)).view()
    return view, *_drawn(view)


def _drawn(view: View) -> tuple[Markup, Markup]:
    """Draw the accelerators, and the fields below them."""
    cards = environment().get_template("cards.html").render(view=view, most_lamps=MOST_LAMPS)
    sizes = environment().get_template("sizes.html").render(view=view)
    return Markup(cards), Markup(sizes)  # noqa: S704, they are escaped


@lru_cache(64)
def _words(_language: str) -> Markup:
    """Render what the script may have to say in the language of the current request."""
    texts = *REMARKS, no_download, stale, login_ended
    template = environment().get_template("words.html")
    words = template.render({it.__name__: it for it in texts})
    return Markup(words)  # noqa: S704, they are escaped


@cache
def environment() -> Environment:
    """Return the templates of all pages, in the language of the current request."""
    made = Environment(
        loader=PackageLoader("gpuspawner.form"),
        autoescape=True,
        extensions=["jinja2.ext.i18n"],
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        auto_reload=False,
    )
    made.install_gettext_callables(gettext, ngettext, newstyle=True)  # type: ignore[attr-defined]
    made.globals.update(language_tag=language_tag, direction=direction)
    return made


def _style(live: LiveAddresses | None) -> Markup:
    return _style_at(live.style if live else None)


@cache
def _style_at(address: str | None) -> Markup:
    """Return the element that brings the style; None has no address."""
    style, _, _ = PackageLoader("gpuspawner.form", "static").get_source(environment(), "form.css")
    element = environment().get_template("style.html")
    return Markup(element.render(address=address, style=Markup(style)))  # noqa: S704, it is ours
