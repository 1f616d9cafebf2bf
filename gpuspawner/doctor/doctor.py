"""`gpuspawner doctor`: finds mistakes in a hub's configuration, its rights and its cluster."""

import asyncio
import os
from collections.abc import Sequence
from inspect import cleandoc
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jupyterhub.utils import url_path_join
from msgspec.structs import asdict
from traitlets import Bool, List, Unicode
from traitlets.config import Config

from gpuspawner.configuration import ConfigurationError, load
from gpuspawner.doctor import terminal
from gpuspawner.doctor.application import UsageError
from gpuspawner.doctor.checks import examine
from gpuspawner.doctor.hub_api import HubApi
from gpuspawner.doctor.hub_command import HubCommand
from gpuspawner.doctor.trial import try_start
from gpuspawner.gates.what_if import NOBODY
from gpuspawner.kube.quoting import count
from gpuspawner.messages.administrators import Finding, Severity
from gpuspawner.offers.shapes import OfferError
from gpuspawner.policies.owner import Owner

_COLOURS = {
    Severity.ERROR: terminal.RED,
    Severity.WARNING: terminal.YELLOW,
    Severity.FINE: terminal.GREEN,
}
_WIDTH = max(map(len, Severity))


def in_the_pod(config: Config) -> str:
    """Return the address of the hub's REST API in its own pod, below the hub's base URL.

    By default, JupyterHub takes that from the path of `JupyterHub.bind_url`.
    """
    its = config.JupyterHub
    base = str(its.get("base_url") or urlsplit(str(its.get("bind_url", ""))).path)
    address: str = url_path_join("http://127.0.0.1:8081", base, "hub/api")
    return address


class Doctor(HubCommand):
    """Check the configuration, the hub's rights and the cluster.

    Each finding says what is so and what to do. The exit status is 1 if one of them is an error.
    With --start, it also starts a server by the hub's REST API, with the token in
    JUPYTERHUB_API_TOKEN, says what it saw, and removes the server.
    """

    name = "doctor"
    description = __doc__
    examples = cleandoc("""
        gpuspawner doctor -f jupyterhub_config.py
        gpuspawner doctor --user alice --group ml-2026
        gpuspawner doctor --start --user alice --accelerator a100
        kubectl exec deploy/hub -- python3 -m gpuspawner doctor --output json
    """)

    user = Unicode(
        help="Try the servers for this user. With --start, also start one in this user's name."
    ).tag(config=True)
    groups = List(Unicode(), help="With --user: a group that this user is in.").tag(
        config=True, option="group"
    )
    starts = Bool(
        help="Also start a server of this user by the hub's REST API, and remove it."
    ).tag(config=True)
    accelerator = Unicode(help="With --start: the key of the server's accelerator.").tag(
        config=True
    )
    profile = Unicode(help="With --start: the slug of the server's profile.").tag(config=True)
    hub_api = Unicode(
        help="""
        With --start: the address of the hub's REST API. By default, JUPYTERHUB_API_URL, or else
        that of a hub in the same pod.
        """
    ).tag(config=True)
    token_file = Unicode(
        help="With --start: a file with a token of the hub, instead of JUPYTERHUB_API_TOKEN."
    ).tag(config=True)

    flags: Any = {"start": ({"Doctor": {"starts": True}}, starts.help)}  # noqa: RUF012

    def run(self) -> int:
        """Print all findings, the worst first."""
        findings = sorted(self._findings(), key=lambda it: list(Severity).index(it.severity))
        self.answer({"findings": [*map(asdict, findings)]}, lambda: _tell(findings))
        return int(any(finding.severity is Severity.ERROR for finding in findings))

    def _findings(self) -> list[Finding]:
        groups = frozenset(self.groups)
        owner = Owner(self.user, groups, frozenset({"user"})) if self.user else NOBODY
        if self.groups and not self.user:
            raise UsageError("--group needs --user")
        of_starts = self.accelerator, self.profile, self.hub_api, self.token_file
        if not self.starts and any(of_starts):
            raise UsageError("--accelerator, --profile, --hub-api and --token-file need --start")
        token = self._token() if self.starts else ""
        try:
            return asyncio.run(self._examined(load(self.path), owner, token))
        except (ConfigurationError, OfferError) as error:
            text = f"{self.path}: the hub would not start: {error}"
            advice = "Correct the configuration file, and run this command again."
            return [Finding("configuration", Severity.ERROR, text, advice)]

    async def _examined(self, config: Config, owner: Owner, token: str) -> list[Finding]:
        found = await examine(config, owner)
        if token:
            address = os.environ.get("JUPYTERHUB_API_URL") or in_the_pod(config)
            api = HubApi(self.hub_api or address, token)
            chosen = {"accelerator": self.accelerator, "profile": self.profile}
            options = {name: it for name, it in chosen.items() if it}
            found += await try_start(config, api, self.user, options, terminal.complain)
        return found

    def _token(self) -> str:
        if not self.user:
            raise UsageError("--start needs --user")
        try:
            written = Path(self.token_file).read_text() if self.token_file else ""
        except (OSError, ValueError) as unread:
            raise UsageError(f"the file of --token-file can't be read: {unread}") from unread
        if self.token_file and not written.strip():
            raise UsageError("the file of --token-file is empty")
        token = written.strip() or os.environ.get("JUPYTERHUB_API_TOKEN", "")
        if not token:
            raise UsageError("--start needs a token of the hub, in JUPYTERHUB_API_TOKEN")
        return token


def _tell(findings: Sequence[Finding]) -> None:
    for finding in findings:
        word = finding.severity.value.ljust(_WIDTH)
        terminal.say_painted(
            word, _COLOURS[finding.severity], f"{finding.text} [{finding.id}]", finding.advice
        )
    severities = [finding.severity for finding in findings]
    errors, warnings, good = map(severities.count, Severity)
    terminal.say()
    terminal.say(f"{count(errors, 'error')}, {count(warnings, 'warning')}, {good} fine.")
