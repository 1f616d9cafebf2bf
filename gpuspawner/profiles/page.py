"""KubeSpawner's form of the administrator's profiles, with availability added.

The availability goes into the description of a profile and the name of a choice, which every
template shows, even an administrator's own or that of jupyterhub-fancy-profiles.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Self

from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup, escape
from msgspec.structs import asdict

from gpuspawner.form.view_model import LiveAddresses
from gpuspawner.language import language_tag
from gpuspawner.messages import (
    Message,
    about,
    choices_changed,
    login_ended,
    no_download,
    profile_choice,
    stale,
    state_text,
)
from gpuspawner.preflight.availability import Availability, State
from gpuspawner.profiles.profile_availability import ChoicePlace, ProfileAvailability
from gpuspawner.profiles.profile_list import WRITTEN_IN, Complete, Profile, text

# Texts that a template may either print into its page, or pass on to a script as JSON.


class PageText(str):
    """A text that prints as HTML, and that JSON shows as plain text.

    KubeSpawner's template prints names and descriptions into its page, where they are HTML. Others,
    such as that of jupyterhub-fancy-profiles, pass the profiles to a script, which draws text.
    """

    __slots__ = ("_html",)
    _html: str

    def __new__(cls, text: str, html: str) -> Self:
        """Make a text; *html* says the same."""
        made = super().__new__(cls, text)
        made._html = html
        return made

    def __str__(self) -> str:
        return self._html

    def __html__(self) -> str:
        return self._html

    def __deepcopy__(self, _: object) -> Self:
        """KubeSpawner copies the profiles before it draws them."""
        return self


# The form itself.

_COLOURS = {
    State.FREE: "success",
    State.BUSY: "warning",
    State.CAN_SCALE_UP: "info",
    State.MAY_SCALE_UP: "info",
}
"""Bootstrap's names of colours; all other states are grey. The text of the state says the same."""

_STATE = Markup(
    '<span class="gpuspawner-state" data-gpuspawner-profile="{slug}">'
    '<span class="badge text-bg-{colour}">{word}</span> {detail}</span>'
)
_NOTICE = Markup('<div class="gpuspawner-message alert alert-info" role="status">{text}</div>\n')

_LIVE = """
<div class="gpuspawner-profiles" data-states="%s" data-stream="%s" %s>
  <p class="gpuspawner-answer" role="status"></p>
  <script src="%s" defer></script>
  <script src="%s" defer></script>
</div>
"""
_SAID = Markup(
    'data-colours="{colours}"\n     data-stale="{stale}" data-login="{login}"'
    ' data-changed="{changed}"'
)

# KubeSpawner 7.1 restores written-in values, from a constant in its page; 7.0 doesn't. The page of
# jupyterhub-fancy-profiles begins with those of its permalinks, in the fragment of the address.
_WRITE_IN_AGAIN = Markup("""
<script>
  if (window.profileList) {{
    const fields = encodeURIComponent(JSON.stringify({permalink}));
    history.replaceState(null, "", `#fancy-forms-config=${{fields}}`);
  }}
  window.addEventListener("load", () => {{
    if (typeof userOptions !== "undefined") return;
    for (const [name, text] of {values}) {{
      const input = document.querySelector(`[data-name="${{CSS.escape(name)}}"]`);
      const select = input?.closest(".js-options-container")?.querySelector("select");
      if (select) {{
        input.value = text;
        select.value = "unlisted-choice";
        select.dispatchEvent(new Event("change", {{ bubbles: true }}));
      }}
    }}
  }});
</script>
""")


def with_states(
    listed: Complete, availabilities: Sequence[ProfileAvailability]
) -> list[dict[str, Any]]:
    """Return copies of the profiles with their availability in their descriptions and names."""
    shown = [_copied(profile) for profile in listed]
    for profile, found in zip(shown, availabilities, strict=True):
        if found.row is not None:
            profile["description"] = _described(profile, found.row)
        for place, row in found.choices.items():
            if row is not None:
                choice, name = _choice(profile, place)
                words, html = _words(row), str(escape(_words(row)))
                said = PageText(profile_choice(name, words), profile_choice(name, html))
                choice["display_name"] = said
        for place, is_there in found.images.items():
            if is_there:
                choice, name = _choice(profile, place)
                choice["display_name"] = PageText(no_download(name), no_download(name))
    return shown


def _choice(profile: Mapping[str, Any], place: ChoicePlace) -> tuple[dict[str, Any], str]:
    """Return the choice of a profile that is in this place, and its name."""
    option, key = place
    choice = profile["profile_options"][option]["choices"][key]
    return choice, str(choice.get("display_name", key))


def _copied(profile: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy whose texts and defaults can change; what is deeper is shared."""
    copied = dict(profile)
    if options := profile.get("profile_options"):
        copied["profile_options"] = {
            name: {
                **option,
                "choices": {k: dict(it) for k, it in (option.get("choices") or {}).items()},
            }
            if "choices" in option
            else option
            for name, option in options.items()
        }
    return copied


def with_chosen(
    shown: list[dict[str, Any]], profiles: Sequence[Profile], options: Mapping[str, object]
) -> list[dict[str, Any]]:
    """Make the chosen options the profiles' defaults, so that the form shows them as chosen."""
    slug = options.get("profile")
    for drawn, profile in zip(shown, profiles, strict=True):
        if slug:
            drawn["default"] = profile.slug == slug
        if not drawn.get("default"):
            continue
        for option in profile.options:
            given = options.get(option.name)
            if any(choice.key == given for choice in option.choices):
                for key, choice in drawn["profile_options"][option.name]["choices"].items():
                    choice["default"] = key == given
    return shown


def written_in(options: Mapping[str, object], profiles: Sequence[Profile]) -> Markup:
    """Return a script that restores the written-in values; empty if there are none."""
    slug = options.get("profile")
    written = {
        option.name: options[option.name + WRITTEN_IN]
        for profile in profiles
        if profile.slug == slug
        for option in profile.options
        if options.get(option.name + WRITTEN_IN)
    }
    if not written:
        return Markup()
    values = [(f"profile-option-{slug}--{name}{WRITTEN_IN}", it) for name, it in written.items()]
    permalink = {"profile": slug}
    for name, it in written.items():
        permalink |= {name: "unlisted_choice", f"{name}:unlisted_choice": it}
    return _WRITE_IN_AGAIN.format(
        values=htmlsafe_json_dumps(values), permalink=htmlsafe_json_dumps(permalink)
    )


def notice(message: Message) -> Markup:
    """Return a notice for the form."""
    return _NOTICE.format(text=message.html)


def states(listed: Complete, availabilities: Sequence[ProfileAvailability]) -> list[dict[str, Any]]:
    """Return the availability of each profile and choice as plain data, for an open form."""
    return [
        {
            "profile": profile["slug"],
            **_said(found.row),
            "choices": [
                {**_labelled(profile, place, partial(_with_state, row)), **_said(row)}
                for place, row in found.choices.items()
            ],
            "images": [
                _labelled(profile, place, no_download if is_there else str)
                for place, is_there in found.images.items()
            ],
        }
        for profile, found in zip(listed, availabilities, strict=True)
    ]


def live(addresses: LiveAddresses) -> Markup:
    """Return what keeps an open form current: the script, and a line for its messages."""
    # `Markup.format` takes ten times as long, for each page.
    states, stream = escape(addresses.states), escape(addresses.stream)
    scripts = escape(addresses.follow), escape(addresses.script)
    written = (states, stream, _said_by_script(language_tag()), *scripts)
    return Markup(_LIVE % written)  # noqa: S704, all of it is escaped


@lru_cache(64)
def _said_by_script(_language: str) -> Markup:
    """Return what the script may have to say in the language of the current request."""
    said = {"stale": stale(), "login": login_ended(), "changed": choices_changed()}
    return _SAID.format(colours=json.dumps(_COLOURS), **said)


def _said(row: Availability | None) -> dict[str, Any]:
    """Return a state and its words; without a row, there is nothing to say."""
    if row is None:
        return {"state": None, "word": "", "detail": "", "gpus": None}
    words = state_text(row)
    gpus = asdict(row.gpus) if row.gpus else None
    return {"state": row.state.value, "word": words.word, "detail": words.detail, "gpus": gpus}


def _labelled(
    profile: Mapping[str, Any], place: ChoicePlace, mark: Callable[[str], str]
) -> dict[str, object]:
    """Return the place of a choice, and its name with what is to be said of it."""
    option, key = place
    return {"option": option, "choice": key, "label": mark(text(_choice(profile, place)[1]))}


def _with_state(row: Availability | None, name: str) -> str:
    return name if row is None else profile_choice(name, _words(row))


def _described(profile: Mapping[str, Any], row: Availability) -> PageText:
    words, state = _words(row), str(_state(row, profile["slug"]))
    description = profile.get("description")
    if not description:
        return PageText(words, state)
    return PageText(profile_choice(str(description), words), f"{description}<br>{state}")


def _state(row: Availability, slug: str) -> Markup:
    words = state_text(row)
    colour = _COLOURS.get(row.state, "secondary")
    return _STATE.format(slug=slug, colour=colour, word=words.word, detail=words.detail)


def _words(row: Availability) -> str:
    words = state_text(row)
    return about(words.word, words.detail) if words.detail else words.word
