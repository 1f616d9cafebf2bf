"""Why the API server rejects a server, for the server's owner."""

from collections.abc import Iterable, Sequence

from gpuspawner.language import gettext as _
from gpuspawner.language import sentences
from gpuspawner.messages import words
from gpuspawner.offers.grant import Grant
from gpuspawner.preflight.rejection import (
    Bound,
    Breach,
    Denied,
    Insecure,
    Missing,
    Of,
    OutOfRange,
    OverQuota,
    QuotaDemands,
    QuotaUncounted,
    Rejection,
    Use,
    WebhookFailed,
    unit_of,
)
from gpuspawner.scheduling.requests import CPU, MEMORY, is_device


def why(rejection: Rejection, grant: Grant) -> str:
    """Explain a rejection; one with figures gets a sentence for each figure that matters."""
    match rejection.cause:
        case OverQuota(uses):
            return _each(_over_quota(use, grant, rejection.of) for use in uses)
        case QuotaDemands(resources):
            return _each(_undemanded(resource, grant) for resource in resources)
        case QuotaUncounted():
            return _("The cluster is still counting how much of its quota is in use.")
        case OutOfRange(breaches):
            return _each(_breach(breach, grant, rejection.of) for breach in breaches)
        case _:
            return _rule(rejection)


def _rule(rejection: Rejection) -> str:
    match rejection.cause:
        case Insecure(level):
            text = _("The cluster's Pod Security level, {level}, doesn't allow this server.")
            return text.format(level=level)
        case Missing(kind, name):
            text = _("Your server needs the {kind} {name}, but the cluster doesn't have it.")
            return text.format(kind=kind, name=name)
        case Denied(""):
            return _("One of the cluster's rules doesn't allow this server.")
        case Denied(said):
            text = _("One of the cluster's rules doesn't allow this server: “{said}”.")
            return text.format(said=said)
        case WebhookFailed():
            return _(
                "The cluster can't accept servers right now: one of its admission checks isn't "
                "responding."
            )
        case _ if rejection.of is Of.HOME:
            return _("The cluster doesn't accept the settings of your home directory.")
        case _:
            return _("The cluster doesn't accept the settings of this server.")


def way_out(rejection: Rejection) -> str:
    """Say what a user without an alternative can do."""
    match rejection.cause:
        case OverQuota() as over if rejection.of is Of.POD and over.may_be_freed:
            return _("Please try again when others have stopped their servers.")
        case OverQuota(uses):
            return _ask_for_more(uses, rejection.of)
        case OutOfRange(breaches):
            return _within_range(breaches, rejection.of)
        case Denied() if rejection.of is Of.HOME:
            return words.ask_alone()
        case Denied():
            return words.ask()
        case QuotaUncounted():
            return words.retry()
        case WebhookFailed():
            return words.retry_or_tell()
        case _:
            return words.tell()


def _ask_for_more(limits: Sequence[Use | Breach], of: Of) -> str:
    if of is Of.HOME or not _are_chosen(limits):
        return _("Please ask your administrator for more.")
    return _("Please choose a smaller server, or ask your administrator for more.")


def _are_chosen(limits: Sequence[Use | Breach]) -> bool:
    """Whether users choose these amounts: memory, CPU or devices, but no pods or disks."""
    names = [_name(it.resource) for it in limits]
    return all(is_device(it) or it in (CPU, MEMORY) for it in names)


def _within_range(breaches: tuple[Breach, ...], of: Of) -> str:
    bounds = {breach.bound for breach in breaches}
    # Users choose neither a missing amount nor the size of a home directory.
    if any(breach.asked is None for breach in breaches) or len(bounds) > 1:
        return words.tell()
    if bounds == {Bound.MAXIMUM}:
        return _ask_for_more(breaches, of)
    if of is Of.HOME or not _are_chosen(breaches):
        return words.tell()
    return _("Please choose more, or ask your administrator.")


def _each(said: Iterable[str]) -> str:
    """Join different sentences: requests and limits often give the same one."""
    return sentences(*dict.fromkeys(said))


def _over_quota(use: Use, grant: Grant, of: Of) -> str:
    if use.asked > use.limit and of is Of.HOME:
        text = _("The quota for {what} is {limit} in total, but your home directory needs {asked}.")
    elif use.asked > use.limit:
        text = _("The quota for {what} is {limit} in total, but your server needs {asked}.")
    elif of is Of.HOME:
        text = _(
            "The quota for {what} doesn't leave enough: {used} of {limit} are in use, and your "
            "home directory needs {asked}."
        )
    else:
        text = _(
            "The quota for {what} doesn't leave enough: {used} of {limit} are in use, and your "
            "server needs {asked}."
        )
    return text.format(
        what=_thing(use.resource, grant),
        asked=words.figure(unit_of(use.resource), use.asked),
        used=words.figure(unit_of(use.resource), use.used),
        limit=words.figure(unit_of(use.resource), use.limit),
    )


def _breach(breach: Breach, grant: Grant, of: Of) -> str:
    return _bound(breach, of).format(
        what=_thing(breach.resource, grant),
        limit=_amount(breach.resource, breach.limit, grant),
        asked=_amount(breach.resource, breach.asked or 0, grant),
    )


def _bound(breach: Breach, of: Of) -> str:
    at_most = breach.bound is Bound.MAXIMUM
    if breach.asked is None and at_most:
        return _(
            "A server can have at most {limit}, but a container of this one has no limit for "
            "{what}."
        )
    if breach.asked is None:
        return _(
            "A server must request at least {limit}, but a container of this one requests no "
            "{what}."
        )
    if of is Of.HOME and at_most:
        return _("A home directory can have at most {limit}; yours needs {asked}.")
    if of is Of.HOME:
        return _("A home directory must have at least {limit}; yours has {asked}.")
    if at_most:
        return _("A server can have at most {limit}; this one asks for {asked}.")
    return _("A server must have at least {limit}; this one asks for {asked}.")


def _undemanded(resource: str, grant: Grant) -> str:
    text = _("The quota requires every server to request {what}; this one doesn't.")
    return text.format(what=_thing(resource, grant))


def _name(resource: str) -> str:
    return resource.removeprefix("requests.").removeprefix("limits.").removeprefix("count/")


def _is_gpu(resource: str, grant: Grant) -> bool:
    return grant.accelerator is not None and _name(resource) == grant.accelerator.resource


def _thing(resource: str, grant: Grant) -> str:
    """Name a rule's resource for users: ``requests.memory`` is memory."""
    match unit_of(resource):
        case "cpu":
            return _("CPU")
        case "memory":
            return _("memory")
        case "ephemeral-storage":
            return _("disk")
        case "storage":
            return _("storage")
        case _:
            return _("GPUs") if _is_gpu(resource, grant) else _name(resource)


def _amount(resource: str, count: int, grant: Grant) -> str:
    if _is_gpu(resource, grant):
        return words.gpu_count(count)
    return words.amount(unit_of(resource) or _name(resource), count)
