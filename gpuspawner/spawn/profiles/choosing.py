"""What a person chose among profiles, hostile until it has been read here.

KubeSpawner itself reads options when the server starts, and answers HTTP 500 to what it cannot
read: a profile or choice that there is not, or a value of another type than text.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpuspawner import patterns
from gpuspawner.options import FieldError
from gpuspawner.quoting import did_you_mean, listing, quote
from gpuspawner.spawn.profiles.profile_list import WRITTEN_IN, Choice, Option, Profile, WriteIn

PROFILE = "profile"


@dataclass(frozen=True, slots=True)
class Chosen:
    """Options that KubeSpawner can load.

    Attributes:
        profile: The profile; None where there is none to choose from.
        options: The options as KubeSpawner reads them.
    """

    profile: Profile | None
    options: Mapping[str, object]

    def instead(self, option: Option, choice: Choice) -> "Chosen":
        """The same with another choice of one option."""
        kept = {k: v for k, v in self.options.items() if k != option.name + WRITTEN_IN}
        return Chosen(self.profile, {**kept, option.name: choice.key})


def choose(raw: object, profiles: Sequence[Profile]) -> Chosen | tuple[FieldError, ...]:
    """Read options as they came: a choice, or every reason why they are none.

    What is left out, null or empty is the administrator's default, as with KubeSpawner; names that
    it does not know it leaves alone, and so they are left alone here.

    Raises:
        re.error: An administrator's ``validation_regex`` is no regular expression.
    """
    if raw is None:
        raw = {}
    if not isinstance(raw, Mapping):
        text = f"{quote(raw)} is not a set of options; send an object with {PROFILE}"
        return (FieldError("", text),)
    if not profiles:
        return Chosen(None, raw)
    profile = _profile(raw.get(PROFILE), profiles)
    if isinstance(profile, FieldError):
        return (profile,)
    errors = tuple(_errors(raw, profile))
    return errors or Chosen(profile, raw)


def check_written(raw: Mapping[str, object], profiles: Sequence[Profile]) -> None:
    """Check what is written in for the profile that is named, as KubeSpawner does when it loads it.

    Raises:
        ValueError: It is not allowed.
        re.error: An administrator's ``validation_regex`` is no regular expression.
    """
    for profile in profiles:
        for option in profile.options if profile.slug == raw.get(PROFILE) else ():
            written = raw.get(option.name + WRITTEN_IN)
            try:
                text = _wrong_write_in(written, option) if written else ""
            except patterns.TooLongError:
                text = _unchecked(written)
            if text:
                raise ValueError(f"{option.name}{WRITTEN_IN}: {text}")


def of_profile(profile: Profile) -> Chosen:
    """A profile with everything else as the administrator has it."""
    return Chosen(profile, {PROFILE: profile.slug})


def keep(raw: object, profiles: Sequence[Profile]) -> Mapping[str, object]:
    """What is left of options once all that cannot be chosen is dropped from them."""
    kept = dict(raw) if isinstance(raw, Mapping) else {}
    while not isinstance(read := choose(kept, profiles), Chosen):
        wrong = {error.field for error in read}
        left = {name: value for name, value in kept.items() if name not in wrong}
        kept = left if len(left) < len(kept) and PROFILE not in wrong else {}
        if not kept:
            break
    return kept


def _profile(given: object, profiles: Sequence[Profile]) -> Profile | FieldError:
    if not given:
        return next(profile for profile in profiles if profile.default)
    by_slug = {profile.slug: profile for profile in profiles}
    if isinstance(given, str) and given in by_slug:
        return by_slug[given]
    hint = did_you_mean(given, by_slug) if isinstance(given, str) else ""
    return FieldError(PROFILE, f"{quote(given)} is not on offer{hint}; choose {listing(by_slug)}")


def _errors(raw: Mapping[str, object], profile: Profile) -> Iterator[FieldError]:
    is_time_up = False
    for option in profile.options:
        written, given = raw.get(option.name + WRITTEN_IN), raw.get(option.name)
        if written:
            try:
                text = _unchecked(written) if is_time_up else _wrong_write_in(written, option)
            except patterns.TooLongError:
                # All texts of a request together may take as long as one.
                is_time_up, text = True, _unchecked(written)
            if text:
                yield FieldError(option.name + WRITTEN_IN, text)
        elif given and not any(_is(given, choice) for choice in option.choices):
            yield FieldError(option.name, f"{quote(given)} is not on offer; {_allowed(option)}")
        elif not given and not option.choices:
            yield FieldError(option.name, f"nothing is chosen; {_allowed(option)}")


def _is(given: object, choice: Choice) -> bool:
    return type(given) is type(choice.key) and given == choice.key


def _wrong_write_in(written: object, option: Option) -> str:
    """Why a value cannot be written in; empty where it can.

    Raises:
        TooLongError: It cannot be said in time.
    """
    if option.write_in is None:
        return f"{quote(written)} is not on offer; {_allowed(option)}"
    if not isinstance(written, str):
        return f"{quote(written)} is not text"
    # KubeSpawner matches from the beginning and not to the end, and so the same is allowed here.
    if patterns.begins(option.write_in.pattern, written):
        return ""
    return f"{quote(written)} is not allowed; {option.write_in.advice or _pattern(option.write_in)}"


def _unchecked(written: object) -> str:
    return f"{quote(written)} cannot be checked; write something shorter or simpler"


def _pattern(write_in: WriteIn) -> str:
    return f"it must match {write_in.pattern}"


def _allowed(option: Option) -> str:
    choices = [str(choice.key) for choice in option.choices]
    if option.write_in is not None:
        choices.append(f"write another in {option.name}{WRITTEN_IN}")
    return f"choose {listing(choices)}" if choices else "leave it out"
