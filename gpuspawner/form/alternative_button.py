"""The buttons of an alternative and of the line: one field that stands for all choices.

A browser sends the value of the pressed button together with all fields. The value holds the
choices as a query, and they replace the fields' own.
"""

from collections.abc import Mapping
from urllib.parse import parse_qsl, urlencode

from gpuspawner.offers.options import ACCELERATOR, NAMES, OPTIONS
from gpuspawner.offers.user_options import OF, UNLISTED, GPURequest, user_options
from gpuspawner.reservations.place_in_line import OPTION

_PROFILE, _OPTION = "profile", "profile-option-"
"""KubeSpawner's names of the fields of profiles."""

_WRITTEN_IN = frozenset(f"{UNLISTED}{option.name}" for option in OPTIONS)

INSTEAD = "gpuspawner-instead"
"""The name of the buttons, also in alternatives.html and follow.js; an administrator's own form may
have any other field."""

KEPT = "gpuspawner-chosen"
"""The name of a query's field that has the choices of a form to which the browser comes back."""

_MOST_KEPT = 4000
"""Characters; proxies refuse long addresses."""


def value(request: GPURequest) -> str:
    """Return the value of a request's button."""
    chosen = {name: it for name, it in user_options(request).items() if it is not None}
    return urlencode({ACCELERATOR: "", **chosen})


def profile_value(options: Mapping[str, object]) -> str:
    """Return the value of the button of a profile, with its options as KubeSpawner stores them."""
    fields = {
        name if name == _PROFILE else f"{_OPTION}{options[_PROFILE]}--{name}": chosen
        for name, chosen in options.items()
        if isinstance(chosen, str) and _PROFILE in options
    }
    return urlencode(fields)


def value_of(form: Mapping[str, list[object]]) -> str:
    """Return the choices of a form's own fields as a button has them; "" if they are too many."""
    chosen = {name: values[-1] for name, values in form.items() if values}
    slug, key = chosen.get(_PROFILE), chosen.get(ACCELERATOR)
    kept = {
        name: it
        for name, it in chosen.items()
        if (slug and (name == _PROFILE or name.startswith(f"{_OPTION}{slug}--")))
        or (key is not None and _is_of_accelerators(name) and name.partition(OF)[2] in ("", key))
    }
    made = urlencode(kept)
    return made if len(made) <= _MOST_KEPT else ""


def pressed(form: Mapping[str, list[object]]) -> dict[str, list[object]]:
    """Return a form's fields; if the button was pressed, with its choices.

    The result is as untrusted as the form. Fields that aren't our options stay. The button of the
    line has what was refused, because without a script something else may be chosen by then.
    """
    buttons = form.get(INSTEAD) or [it for it in form.get(OPTION, ()) if "=" in str(it)]
    if not buttons:
        return dict(form)
    chosen = parse_qsl(str(buttons[-1]), keep_blank_values=True)
    is_ours = (
        _is_of_profiles if any(name == _PROFILE for name, _ in chosen) else _is_of_accelerators
    )
    fields = {name: it for name, it in form.items() if name != INSTEAD and not is_ours(name)}
    return fields | {name: [value] for name, value in chosen if is_ours(name)}


def _is_of_accelerators(name: str) -> bool:
    return name.partition(OF)[0] in NAMES or name in _WRITTEN_IN


def _is_of_profiles(name: str) -> bool:
    return name == _PROFILE or name.startswith(_OPTION)
