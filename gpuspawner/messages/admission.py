"""Why the API server rejects a server, for the server's owner."""

from collections.abc import Iterable

from gpuspawner.admission.rejection import (
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
)
from gpuspawner.admission.rejection_parser import unit_of
from gpuspawner.language import gettext as _
from gpuspawner.messages import words
from gpuspawner.policy import Grant


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
    """Explain a rejection that has no figures."""
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
        case OverQuota(uses) if rejection.of is Of.POD and _may_be_freed(uses):
            return _("Please try again when others have stopped their servers.")
        case OverQuota() | OutOfRange() | Denied():
            return _("Please ask your administrator if you need it.")
        case QuotaUncounted():
            return _("Please try again in a few seconds.")
        case WebhookFailed():
            return _("Please try again later, or tell your administrator.")
        case _:
            return _("Please tell your administrator. The hub's log has the details.")


def _each(sentences: Iterable[str]) -> str:
    """Join different sentences: requests and limits often give the same one."""
    return " ".join(dict.fromkeys(sentences))


def _may_be_freed(uses: tuple[Use, ...]) -> bool:
    return all(use.asked <= use.limit for use in uses)


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
        asked=_figure(use.resource, use.asked),
        used=_figure(use.resource, use.used),
        limit=_figure(use.resource, use.limit),
    )


def _breach(breach: Breach, grant: Grant, of: Of) -> str:
    return _bound(breach, of).format(
        what=_thing(breach.resource, grant),
        limit=_figure(breach.resource, breach.limit),
        asked=_figure(breach.resource, breach.asked or 0),
    )


def _bound(breach: Breach, of: Of) -> str:
    at_most = breach.bound is Bound.MAXIMUM
    if breach.asked is None and at_most:
        return _("A server may have at most {limit} ({what}); this one doesn't say how much.")
    if breach.asked is None:
        return _("A server must have at least {limit} ({what}); this one doesn't say how much.")
    if of is Of.HOME and at_most:
        return _("A home directory may have at most {limit} ({what}); yours needs {asked}.")
    if of is Of.HOME:
        return _("A home directory must have at least {limit} ({what}); yours has {asked}.")
    if at_most:
        return _("A server may have at most {limit} ({what}); this one asks for {asked}.")
    return _("A server must have at least {limit} ({what}); this one asks for {asked}.")


def _undemanded(resource: str, grant: Grant) -> str:
    text = _("The quota requires every server to request {what}; this one doesn't.")
    return text.format(what=_thing(resource, grant))


def _thing(resource: str, grant: Grant) -> str:
    """Name a rule's resource for users: ``requests.memory`` is memory."""
    name = resource.removeprefix("requests.").removeprefix("limits.").removeprefix("count/")
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
            is_gpu = grant.accelerator is not None and name == grant.accelerator.resource
            return _("GPUs") if is_gpu else name


def _figure(resource: str, amount: int) -> str:
    match unit_of(resource):
        case "cpu":
            return words.cores(amount)
        case "":
            return str(amount)
        case _:
            return words.memory(amount)
