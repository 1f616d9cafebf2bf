"""What policies deny, and what is left: in sentences that name the figures and the way out."""

from collections.abc import Callable, Iterable, Mapping
from itertools import chain

from msgspec.structs import replace

from gpuspawner.language import all_of, ngettext, sentence, sentences
from gpuspawner.language import gettext as _
from gpuspawner.messages import words
from gpuspawner.messages.words import Message
from gpuspawner.policies.limits import (
    OfferKind,
    OverLimit,
    PolicyDenial,
    Standing,
    Uncounted,
    Withheld,
)
from gpuspawner.policies.policies import Amount, Limit, Measure, Per, Policies, Policy, What
from gpuspawner.policies.remaining import Allowance

DisplayNames = Mapping[str, str]
"""Display names of accelerators, images and profiles, by key."""


def policy_denied(denial: PolicyDenial, names: DisplayNames) -> Message:
    """Say what a policy denies: in the administrator's own words, with the figures, and what helps.

    An administrator's explanation comes first; the figures follow, because only we know them.
    """
    match denial:
        case Withheld():
            return _withheld(denial, names)
        case OverLimit():
            return Message.of(*_explanation(denial.policy), _over(denial, names), _way_out(denial))
        case Uncounted():
            return Message.of(_("The hub can't count right now how much is in use."), words.retry())


def denied_to_many(denial: PolicyDenial, allowed: int, names: DisplayNames) -> str:
    """Say the same to somebody who only asks: *denial* counts the servers that are allowed."""
    if isinstance(denial, OverLimit) and denial.standing.limit.per is Per.GROUP:
        now = replace(denial.standing, used=denial.standing.used - allowed * denial.asked)
        return sentences(*_explanation(denial.policy), _standing(now, names))
    return policy_denied(denial, names).text


def denied_in_short(denial: object, names: DisplayNames) -> str:
    """Say in a few words, as plain text, why a user can't choose this; empty if it isn't known."""
    match denial:
        case OverLimit() if denial.may_pass:
            return limit_reached(denial.standing, names)
        case OverLimit() | Withheld() if explained := _explanation(denial.policy):
            return explained[0]
        case Withheld() | OverLimit(Standing(limit=Limit(most=0))):
            return _("it isn't offered to you")
        case OverLimit(Standing(limit=limit)):
            return _("the limit is {most}").format(most=amount_of(limit.measure, limit.most, names))
        case _:
            return ""


def allowance_lines(allowance: Allowance, names: DisplayNames) -> list[str]:
    """Say what is left, one sentence for each limit."""
    lines = [_standing(it, names) for it in allowance.standings]
    if not allowance.is_counted:
        lines.append(_("The hub can't count right now how much is in use."))
    if allowance.lifetime is not None:
        text = _("A server with a GPU ends after {time}.")
        lines.append(text.format(time=words.duration(allowance.lifetime)))
    return lines


def no_gpu_lines(policies: Iterable[Policy]) -> list[str]:
    """Say that these policies leave no GPU, and why, as far as the form doesn't say it below."""
    reasons = (_explanation(it) for it in policies if not it.shows_withheld)
    return [_("No GPU is offered to you."), *dict.fromkeys(chain.from_iterable(reasons))]


def limit_reached(standing: Standing, names: DisplayNames) -> str:
    """Say which limit leaves nothing of an accelerator, next to its name; *names* has only this."""
    limit = standing.limit
    used = policy_figure(limit.measure, standing.used)
    most = amount_of(limit.measure, limit.most, names)
    if limit.measure.of in names:
        most = policy_figure(limit.measure, limit.most)
    if limit.per is Per.GROUP:
        text = _("the group {group} uses {used} of its {most}")
        return text.format(group=standing.group, used=used, most=most)
    return _("you're using {used} of your {most}; stop a server first").format(used=used, most=most)


def _standing(standing: Standing, names: DisplayNames) -> str:
    limit = standing.limit
    most = amount_of(limit.measure, limit.most, names)
    used = policy_figure(limit.measure, standing.used)
    if limit.per is Per.GROUP:
        text = _("The group {group} uses {used} of its {most}.")
        return text.format(group=standing.group, used=used, most=most)
    if not standing.used:
        return _("You can use {most} at a time.").format(most=most)
    return _("You're using {used} of your {most}.").format(used=used, most=most)


def _withheld(denial: Withheld, names: DisplayNames) -> Message:
    name = names.get(denial.key, words.device(denial.key))
    if denial.choice is OfferKind.PROFILE:
        name = words.profile_named(name)
    return Message.of(*_explanation(denial.policy), _not_offered(name), words.ask())


def _not_offered(name: str) -> str:
    return _("{name} isn't offered to you.").format(name=name)


def _explanation(policy: Policy) -> tuple[str, ...]:
    """Return the administrator's words as a sentence; nothing if there are none."""
    return (sentence(policy.explanation.strip()),) if policy.explanation else ()


def _over(denial: OverLimit, names: DisplayNames) -> str:
    standing = denial.standing
    limit = standing.limit
    if not limit.most and limit.measure.of:
        return _not_offered(_device(limit.measure, names))
    if not limit.most and limit.measure.counts_gpus:
        return _("No GPU is offered to you.")
    most = amount_of(limit.measure, limit.most, names)
    asked = amount_of(limit.measure, denial.asked, names)
    match limit.per:
        case Per.SERVER:
            text = _("A server of yours can have at most {most}; this one would have {asked}.")
            return text.format(most=most, asked=asked)
        case Per.USER:
            return _of_user(standing, most, asked)
        case Per.GROUP:
            text = _(
                "The group {group} can have {most} at a time, and uses {used}; your server "
                "would add {asked}."
            )
            used = policy_figure(limit.measure, standing.used)
            return text.format(group=standing.group, most=most, used=used, asked=asked)


def _of_user(standing: Standing, most: str, asked: str) -> str:
    if not standing.servers:
        text = _("You can have at most {most} at a time; this server would have {asked}.")
        return text.format(most=most, asked=asked)
    text = _("You can have {most} at a time, and you're using {used}: {servers}.")
    used = policy_figure(standing.limit.measure, standing.used)
    servers = all_of([it or _("your default server") for it in standing.servers])
    return text.format(most=most, used=used, servers=servers)


def _way_out(denial: OverLimit) -> str:
    if not denial.may_pass:
        return words.ask()
    is_left = denial.standing.left > 0
    if denial.standing.limit.per is Per.USER and denial.standing.servers:
        if is_left:
            return _("Stop one of these servers first, or choose a smaller one.")
        return _("Stop one of these servers first.")
    if is_left:
        return _("Please choose a smaller server, or try again later.")
    return _("Please try again later.")


def amount_of(measure: Measure, amount: Amount, names: DisplayNames) -> str:
    """Name an amount with what it counts: `2 GPUs`, `1 × Tesla T4`, `16 GiB of memory`."""
    match measure.what:
        case What.GPUS if measure.of:
            return f"{_number(amount)} × {_device(measure, names)}"
        case What.GPUS:
            text = ngettext("{count} GPU", "{count} GPUs", _plural(amount))
            return text.format(count=_number(amount))
        case What.GPU_SERVERS:
            text = ngettext(
                "{count} server with a GPU", "{count} servers with a GPU", _plural(amount)
            )
            return text.format(count=_number(amount))
        case What.MEMORY | What.CPU:
            return words.amount(measure.what.value, int(amount))


def _device(measure: Measure, names: DisplayNames) -> str:
    return names.get(measure.of, words.device(measure.of))


def policy_figure(measure: Measure, amount: Amount) -> str:
    """Name an amount without what it counts: `2`, `16 GiB`."""
    match measure.what:
        case What.GPUS | What.GPU_SERVERS:
            return _number(amount)
        case What.MEMORY | What.CPU:
            return words.figure(measure.what.value, int(amount))


def _number(amount: Amount) -> str:
    """Write a number of GPUs: a share of one as a decimal, because 1/7 is hard to compare."""
    return str(amount) if isinstance(amount, int) else f"{round(float(amount), 3):g}"


def _plural(amount: Amount) -> int:
    """Return the number that decides the plural; for a share of a GPU, it is that of two."""
    return int(amount) if amount == int(amount) else 2


# For administrators, in the hub's log and in English.


def explain_policies(policies: Policies | Callable[..., object], namespace: str) -> tuple[str, ...]:
    """Say how many policies there are, and for which limits pods are counted; nothing if none."""
    counted = f"the hub counts the pods in {namespace or 'all namespaces'}"
    if not isinstance(policies, Policies):
        return (f"policies: made by a function; for limits, {counted}",)
    limits = (limit for it in policies.policies for limit in it.limits if limit.counts_others)
    keys = sorted({limit.key.partition("[")[0] for limit in limits})
    because = f"; for {', '.join(keys)}, {counted}" if keys else ""
    return (f"policies: {len(policies.policies)}{because}",) if policies else ()
