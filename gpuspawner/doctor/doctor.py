"""`gpuspawner doctor`: finds mistakes in a hub's configuration, its rights and its cluster."""

import asyncio
from collections.abc import Iterable
from inspect import cleandoc
from typing import Any

from msgspec.structs import asdict
from traitlets import List, Unicode

from gpuspawner.configuration import ConfigurationError, load
from gpuspawner.doctor import terminal
from gpuspawner.doctor.checks import examine
from gpuspawner.doctor.command import COMMON_ALIASES, Command
from gpuspawner.doctor.hub import NOBODY
from gpuspawner.messages.administrators import Finding, Severity
from gpuspawner.offers.shapes import OfferError
from gpuspawner.policies.owner import Owner

_COLOURS = {
    Severity.ERROR: terminal.Colour.RED,
    Severity.WARNING: terminal.Colour.YELLOW,
    Severity.FINE: terminal.Colour.GREEN,
}
_WIDTH = max(map(len, Severity))


class Doctor(Command):
    """Check the configuration, the hub's rights and the cluster.

    Each finding says what is so and what to do. The exit status is 1 if one of them is an error.
    """

    name = "doctor"
    description = __doc__
    examples = cleandoc("""
        gpuspawner doctor -f jupyterhub_config.py
        gpuspawner doctor --user alice --group ml-2026
        kubectl exec deploy/hub -- python3 -m gpuspawner doctor --output json
    """)

    user = Unicode(
        help="Check the profiles that a function in KubeSpawner.profile_list lists for this user."
    ).tag(config=True)
    groups = List(Unicode(), help="A group that this user is in.").tag(config=True)

    aliases: Any = {**COMMON_ALIASES, "user": "Doctor.user", "group": "Doctor.groups"}  # noqa: RUF012, as traitlets has it

    def run(self) -> int:
        """Print all findings, the worst first."""
        findings = sorted(self._findings(), key=lambda it: list(Severity).index(it.severity))
        if self.output == "json":
            terminal.say_json({"findings": [asdict(finding) for finding in findings]})
        else:
            _tell(findings)
        return int(any(finding.severity is Severity.ERROR for finding in findings))

    def _findings(self) -> list[Finding]:
        groups = frozenset(self.groups)
        owner = Owner(self.user, groups, frozenset({"user"})) if self.user else NOBODY
        try:
            return asyncio.run(examine(load(self.path), owner))
        except (ConfigurationError, OfferError) as error:
            text = f"{self.path}: the hub would not start: {error}"
            advice = "Correct the configuration file, and run this command again."
            return [Finding("configuration", Severity.ERROR, text, advice)]


def _tell(findings: Iterable[Finding]) -> None:
    counts = dict.fromkeys(Severity, 0)
    for finding in findings:
        counts[finding.severity] += 1
        word = finding.severity.value.ljust(_WIDTH)
        terminal.say_painted(
            word, _COLOURS[finding.severity], f"{finding.text} [{finding.id}]", finding.advice
        )
    errors, warnings, good = counts.values()
    terminal.say()
    terminal.say(f"{_count(errors, 'error')}, {_count(warnings, 'warning')}, {good} fine.")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
