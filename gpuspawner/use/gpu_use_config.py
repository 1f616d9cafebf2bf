"""What is kept of the use of GPUs, from the trait `gpu_use`, read strictly."""

import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from msgspec import Meta, field
from msgspec.structs import replace

from gpuspawner.kube.quoting import quote
from gpuspawner.offers import texts
from gpuspawner.offers.accelerators import check_entries
from gpuspawner.offers.shapes import OfferError, Shape, Text, read
from gpuspawner.troubles.facts import DAYS_KEPT

READ_USE = "custom:gpuspawner:read:use"
"""The scope of a culler, and of who asks for the report."""
SCOPES = {READ_USE: {"description": "Read which servers use their GPUs."}}
_Days = Annotated[int, Meta(ge=1, le=366)]
_Label = Annotated[str, Meta(pattern=texts.PROMETHEUS_LABEL)]
Notify = Callable[[Mapping[str, Any]], Awaitable[object] | object]
"""An administrator's function that tells an owner of a warning; it gets what there is to tell."""


class UseRules(Shape, frozen=True):
    """The keys of `gpu_use`: which facts are kept, and which Prometheus knows the use of GPUs.

    Attributes:
        directory: Where facts are kept; None for memory only.
        days: For how long they are kept there.
        prometheus: The address of a Prometheus that scrapes DCGM exporter; "" for none.
        prometheus_labels: Which labels a series must have, if others are somebody else's.
        notify: Tells owners of warnings, as `Notify`; `read_use` reads it, which is no plain data.
    """

    directory: Text | None = None
    days: _Days = DAYS_KEPT
    prometheus: Text = ""
    prometheus_labels: dict[str, Any] = field(default_factory=dict)
    notify: Any = None

    def __post_init__(self) -> None:
        """Check the directory, the address, and the names and the values of the labels."""
        check_entries(self.prometheus_labels, _Label, str, ".prometheus_labels")
        if self.directory is not None:
            _check_directory(self.directory)
        if self.prometheus:
            _check_address(self.prometheus)


def read_use(given: object) -> UseRules | None:
    """Read the trait; None if it is off.

    Raises:
        OfferError: It isn't valid; the text names the key.
    """
    if given is False:
        return None
    if given is True:
        return UseRules()
    plain = dict(given) if isinstance(given, Mapping) else given
    notify = plain.pop("notify", None) if isinstance(plain, dict) else None
    if notify is not None and not callable(notify):
        raise OfferError("gpu_use.notify", "must be a function that gets one dictionary")
    return replace(read(plain, UseRules, "gpu_use"), notify=notify)


def _check_directory(text: str) -> None:
    if not Path(text).is_absolute():
        raise OfferError(".directory", f"{quote(text)} must begin with /")
    if not _is_encodable(text):
        raise OfferError(".directory", f"{quote(text)} can't be the path of a folder")


def _is_encodable(path: str) -> bool:
    """Whether the operating system can have such a path: without NUL, or half a surrogate pair."""
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def _check_address(text: str) -> None:
    try:
        parts = urlsplit(text)
        is_web = parts.scheme in ("http", "https")
        is_one = is_web and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_one = False
    if not is_one:
        kind = "the address of a Prometheus, such as http://prometheus-server.monitoring"
        told = quote(text.rpartition("@")[2])  # logs have no passwords
        raise OfferError(".prometheus", f"{told} must be {kind}")
