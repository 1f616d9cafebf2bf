"""KubeSpawner's form of the administrator's profiles, with availability added.

The availability goes into the description of a profile and the name of a choice, which every
template shows, even an administrator's own.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup, escape

from gpuspawner.availability import Availability, State
from gpuspawner.messages import Message, profile_choice, state_text
from gpuspawner.spawn.profiles.availability import ProfileAvailability
from gpuspawner.spawn.profiles.profile_list import WRITTEN_IN, Complete, Profile

_COLOURS = {
    State.FREE: "success",
    State.BUSY: "warning",
    State.CAN_SCALE_UP: "info",
}
"""Bootstrap's names of colours; all other states are grey. The text of the state says the same."""

_STATE = Markup(
    '<span class="gpuspawner-availability"><span class="badge text-bg-{colour}">{word}</span>'
    " {detail}</span>"
)
_NOTICE = Markup('<div class="gpuspawner-message alert alert-info" role="status">{text}</div>\n')

# KubeSpawner 7.1 restores written-in values, from a constant in its page; 7.0 doesn't.
_WRITE_IN_AGAIN = Markup("""
<script>
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
    shown = copy.deepcopy(list(map(dict, listed)))
    for profile, found in zip(shown, availabilities, strict=True):
        if found.row is not None:
            description = profile.get("description") or ""
            state = _state(found.row)
            profile["description"] = f"{description}<br>{state}" if description else str(state)
        for (option, key), row in found.choices.items():
            choice = profile["profile_options"][option]["choices"][key]
            name = choice.get("display_name", key)
            choice["display_name"] = profile_choice(str(name), str(escape(_words(row))))
    return shown


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
    values = [
        (f"profile-option-{profile.slug}--{name}", options[name])
        for profile in profiles
        if profile.slug == options.get("profile")
        for name in (option.name + WRITTEN_IN for option in profile.options)
        if options.get(name)
    ]
    return _WRITE_IN_AGAIN.format(values=htmlsafe_json_dumps(values)) if values else Markup()


def notice(message: Message) -> Markup:
    """Return a notice for the form."""
    return _NOTICE.format(text=message.html)


def _state(row: Availability) -> Markup:
    words = state_text(row)
    colour = _COLOURS.get(row.state, "secondary")
    return _STATE.format(colour=colour, word=words.word, detail=words.detail)


def _words(row: Availability) -> str:
    words = state_text(row)
    return f"{words.word}: {words.detail}" if words.detail else words.word
