"""A user's choice among profiles, untrusted until this module reads it.

KubeSpawner itself reads options only when the server starts, and answers HTTP 500 if it can't. What
it loads then is limited here, too: the values that users write in, and what overrides may set.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from math import inf

import msgspec

from gpuspawner.compat.kubespawner import Stock
from gpuspawner.language import gettext as _
from gpuspawner.language import sentence, sentences
from gpuspawner.offers import regexes, wording
from gpuspawner.offers.options import FieldError, is_number
from gpuspawner.offers.types import ScaleUp
from gpuspawner.profiles.profile_list import (
    WRITTEN_IN,
    Complete,
    ListedChoice,
    Profile,
    ProfileOption,
    WriteIn,
    read,
    without_patterns,
)
from gpuspawner.start.host import Host
from gpuspawner.start.request_options import PROFILE, Sketch

Errors = tuple[FieldError, ...]


class Chosen(msgspec.Struct, frozen=True):
    """Options that KubeSpawner can load.

    Attributes:
        profile: None if there are no profiles.
        options: As KubeSpawner reads them.
    """

    profile: Profile | None
    options: Mapping[str, object]

    @property
    def slug(self) -> str:
        """The slug of its profile; "" if there are no profiles."""
        return self.profile.slug if self.profile else ""

    @property
    def scale_up(self) -> ScaleUp | None:
        """The pool that its choices declare, or else its profile."""
        if self.profile is None:
            return None
        chosen = (
            choice.scale_up
            for option in self.profile.options
            for choice in option.choices
            if choice.scale_up and self.has(option, choice)
        )
        return next(chosen, self.profile.scale_up)

    @property
    def open(self) -> tuple[ProfileOption, ...]:
        """The options in which users have to write a value, and have written none."""
        options = self.profile.options if self.profile else ()
        needed = (it for it in options if it.write_in and not it.choices)
        return tuple(it for it in needed if not self.options.get(it.name + WRITTEN_IN))

    @property
    def settled(self) -> Mapping[str, object]:
        """What is chosen for each option of its profile, with the defaults."""
        return {
            option.name: self.options.get(option.name + WRITTEN_IN)
            or [it.key for it in option.choices if self.has(option, it)]
            for option in (self.profile.options if self.profile else ())
        }

    def has(self, option: ProfileOption, choice: ListedChoice) -> bool:
        """Whether an option has this choice: chosen, or as its default; not if one is written."""
        if self.options.get(option.name + WRITTEN_IN):
            return False
        given = self.options.get(option.name)
        return _is(given, choice) if given else choice.default

    def instead(self, option: ProfileOption, choice: ListedChoice) -> "Chosen":
        """Return the same options with another choice for one option."""
        kept = {k: v for k, v in self.options.items() if k != option.name + WRITTEN_IN}
        return Chosen(self.profile, {**kept, PROFILE: self.slug, option.name: choice.key})


def choose(raw: object, profiles: Sequence[Profile]) -> Chosen | Errors:
    """Read options as sent: return the choice, or all errors in it.

    As in KubeSpawner, missing, null and empty options mean the administrator's default, and unknown
    names are ignored.

    Raises:
        re.error: An administrator's ``validation_regex`` is not a regular expression.
    """
    if raw is None:
        raw = {}
    if not isinstance(raw, Mapping):
        return (FieldError("", wording.not_options(raw, [PROFILE])),)
    if not profiles:
        return Chosen(None, raw)
    profile = _profile(raw.get(PROFILE), profiles)
    if isinstance(profile, FieldError):
        return (profile,)
    errors = tuple(_errors(raw, profile))
    return errors or Chosen(profile, raw)


def check_written(raw: Mapping[str, object], profiles: Sequence[Profile]) -> None:
    """Check the written-in values for the named profile, as KubeSpawner does when it loads it.

    Raises:
        ValueError: A value isn't allowed.
        re.error: As `choose`.
    """
    for profile in profiles:
        for error in _errors(raw, profile) if profile.slug == raw.get(PROFILE) else ():
            if error.field.endswith(WRITTEN_IN):
                raise ValueError(f"{error.field}: {error.text}")


def of_profile(profile: Profile) -> Chosen:
    """Choose a profile, with the administrator's defaults for its options."""
    return Chosen(profile, {PROFILE: profile.slug})


def keep(
    raw: object, profiles: Sequence[Profile], *, to_correct: bool = False
) -> Mapping[str, object]:
    """Return the options without those that can't be chosen.

    Texts that are written in stay if they are *to_correct*: the default in their place would be
    another choice than the user's.
    """
    given = dict(raw) if isinstance(raw, Mapping) else {}
    written = {k: v for k, v in given.items() if k.endswith(WRITTEN_IN)}
    try:
        kept = _keep(given, profiles)
    except re.error:  # the start reports the broken expression; the form must still come
        kept = _keep({k: v for k, v in given.items() if k not in written}, profiles)
    if to_correct and PROFILE in kept:
        kept = {**kept, **{k: v for k, v in written.items() if isinstance(v, str)}}
    return kept


def _keep(kept: Mapping[str, object], profiles: Sequence[Profile]) -> Mapping[str, object]:
    while not isinstance(found := choose(kept, profiles), Chosen):
        wrong = {error.field for error in found}
        if PROFILE in wrong:
            return {}
        if not wrong & kept.keys():  # what is missing has to be chosen, but spoils nothing else
            break
        kept = {name: value for name, value in kept.items() if name not in wrong}
    return kept


def _profile(given: object, profiles: Sequence[Profile]) -> Profile | FieldError:
    if not given:
        return next(profile for profile in profiles if profile.default)
    slugs = list(dict.fromkeys(profile.slug for profile in profiles))
    if isinstance(given, str) and given in slugs:
        # As KubeSpawner, which finds the first of several profiles with the same slug.
        return next(profile for profile in profiles if profile.slug == given)
    problem = wording.not_offered(given, slugs)
    return FieldError(PROFILE, sentences(problem, wording.choose(slugs)), PROFILE)


def _errors(raw: Mapping[str, object], profile: Profile) -> Iterator[FieldError]:
    is_time_up = False
    for option in profile.options:
        written, given = raw.get(option.name + WRITTEN_IN), raw.get(option.name)
        if written:
            try:
                text = _unchecked(written) if is_time_up else _wrong_write_in(written, option)
            except regexes.TooLongError:
                # All texts of a request together get the time of one.
                is_time_up, text = True, _unchecked(written)
            if text:
                label = option.write_in.label if option.write_in else ""
                yield FieldError(option.name + WRITTEN_IN, text, label or option.label)
        elif given and not any(_is(given, choice) for choice in option.choices):
            problem = wording.not_offered(given)
            yield FieldError(option.name, sentences(problem, _allowed(option)), option.label)
        elif not given and not option.choices and not isinstance(raw, Sketch):
            problem = _("Nothing is chosen.")
            yield FieldError(option.name, sentences(problem, _allowed(option)), option.label)


def _is(given: object, choice: ListedChoice) -> bool:
    """Whether a value is a choice's key: as in KubeSpawner, 2.0 is 2; but `true` isn't 1."""
    are_numbers = is_number(given) and is_number(choice.key)
    return given == choice.key and (are_numbers or type(given) is type(choice.key))


def _wrong_write_in(written: object, option: ProfileOption) -> str:
    """Return why a value can't be written in; empty if it can.

    Raises:
        TooLongError: Checking the value takes too long.
    """
    if option.write_in is None:
        return sentences(wording.not_offered(written), _allowed(option))
    # KubeSpawner can't match a number either.
    given = written if option.write_in.pattern else _as_text(written)
    if not isinstance(given, str):
        return wording.not_text(given)
    # As in KubeSpawner, the match begins at the start, but needn't reach the end.
    if regexes.begins(option.write_in.pattern, given):
        return ""
    problem = _("{value} isn't allowed.").format(value=wording.quoted(given))
    return sentences(problem, _advice(option.write_in))


def _as_text(written: object) -> object:
    """Return a number as the text that KubeSpawner puts into overrides; anything else unchanged."""
    if isinstance(written, int | float) and not isinstance(written, bool):
        return str(written) if -inf < written < inf else written
    return written


def _unchecked(written: object) -> str:
    text = _("{value} takes too long to check. Enter something shorter or simpler.")
    return text.format(value=wording.quoted(written))


def _advice(write_in: WriteIn) -> str:
    if write_in.advice:
        return sentence(write_in.advice)
    return _("It must match {expression}.").format(expression=write_in.pattern)


def _allowed(option: ProfileOption) -> str:
    choices = [str(choice.key) for choice in option.choices]
    if option.write_in is not None:
        hint = _("another value in {field}").format(field=f"{option.name}{WRITTEN_IN}")
        return wording.choose(choices, hint)
    return wording.choose(choices) if choices else _("Leave it out.")


def validate_user_options(spawner: Host, stock: Stock, profiles: Complete) -> None:
    """Validate as KubeSpawner does, but match written-in values in bounded time.

    Raises:
        ValueError: They aren't valid, or nobody can tell. KubeSpawner 7.1 then draws its form
            without them.
    """
    stock.validate_user_options(without_patterns(profiles))
    if spawner.user_options:
        try:
            check_written(spawner.user_options, read(profiles))
        except re.error as error:
            raise ValueError(f"a validation_regex is broken: {error}") from error
