"""`gpuspawner report`: what the record says of the last days, and forgetting a user."""

import os
import time
from datetime import UTC, datetime
from http.client import HTTPException
from inspect import cleandoc
from pathlib import Path
from urllib.request import Request, urlopen

import msgspec
from traitlets import Int, Unicode

from gpuspawner.configuration import check, load, spawner_class
from gpuspawner.doctor import terminal
from gpuspawner.doctor.application import UsageError
from gpuspawner.doctor.hub_command import HubCommand
from gpuspawner.kube.objects import UNDECODABLE
from gpuspawner.messages import words
from gpuspawner.use.gpu_use_config import UseRules, read_use
from gpuspawner.use.record import RefusalReport, report
from gpuspawner.use.record_files import FactFiles

_PATIENCE = 30.0


class RecordReport(HubCommand):
    """Say how many starts were refused, or went on with a warning, and how those ended.

    It reads the files of `gpu_use.directory`. Without a directory, it asks the running hub, which
    knows what has happened since it started. For that it needs JUPYTERHUB_API_URL, and in
    JUPYTERHUB_API_TOKEN a token with the scope custom:gpuspawner:read:use.
    """

    name = "report"
    description = __doc__
    examples = cleandoc("""
        gpuspawner report --days 7
        gpuspawner report --forget ann
    """)

    days = Int(7, min=1, help="For how many days; only with gpu_use.directory.").tag(config=True)
    forget = Unicode(
        help="Remove this user from the files of gpu_use.directory, instead of a report."
    ).tag(config=True)

    def run(self) -> int:
        """Print it."""
        config = load(self.path)
        rules = read_use(check(config, spawner_class(config)).gpu_use)
        if rules is None:
            raise UsageError("GPUSpawner.gpu_use is off, so nothing is kept")
        if rules.directory is not None:
            _check(Path(rules.directory))
        if self.forget:
            return self._forget(rules)
        counted = _of_hub() if rules.directory is None else self._of_files(rules, rules.directory)
        self.answer(msgspec.to_builtins(counted), lambda: _say(counted))
        return 0

    def _forget(self, rules: UseRules) -> int:
        if rules.directory is None:
            raise UsageError("without gpu_use.directory, nothing is kept but in the hub's memory")
        try:
            removed = FactFiles(rules.directory, rules.days).forget(self.forget)
        except OSError as error:
            why = f"can't remove {self.forget} from the files in {rules.directory}: {error}"
            raise UsageError(f"gpu_use.directory: {why}") from error
        terminal.say(f"Removed {removed} entries. The hub's memory has them until it restarts.")
        return 0

    def _of_files(self, rules: UseRules, directory: str) -> RefusalReport:
        since = time.time() - self.days * 24 * 3600
        try:
            return report(FactFiles(directory, rules.days).since(since))
        except OSError as error:
            raise UsageError(f"gpu_use.directory: {error}") from error


def _check(directory: Path) -> None:
    try:
        is_one = directory.is_dir()
    except OSError as error:
        raise UsageError(f"gpu_use.directory: {error}") from error
    if not is_one:
        raise UsageError(f"gpu_use.directory: there is no directory {directory}")


def _of_hub() -> RefusalReport:
    try:
        base = os.environ["JUPYTERHUB_API_URL"].rstrip("/").removesuffix("/api")
        token = os.environ["JUPYTERHUB_API_TOKEN"]
    except KeyError as missing:
        raise UsageError(
            f"{missing.args[0]} isn't set. Without gpu_use.directory only the running hub knows "
            "what has happened; it tells whoever has the scope custom:gpuspawner:read:use"
        ) from None
    address = f"{base}/gpuspawner/report"
    try:
        request = Request(address, headers={"Authorization": f"token {token}"})  # noqa: S310, the hub's own address
        with urlopen(request, timeout=_PATIENCE) as answer:  # noqa: S310
            return msgspec.json.decode(answer.read(), type=RefusalReport)
    except (OSError, HTTPException, *UNDECODABLE) as error:
        raise UsageError(f"{address}: {error}") from error


def _say(counted: RefusalReport) -> None:
    if not counted.since:
        terminal.say("Nothing has happened yet.")
        return
    since = datetime.fromtimestamp(counted.since, UTC).strftime("%Y-%m-%d %H:%M UTC")
    terminal.say(f"Since {since}: starts asked for: {counted.starts}, refused: {counted.refused}.")
    if not counted.overruled:
        return
    terminal.say(
        f"With preflight = 'enforce', {counted.overruled} more would have been refused at once. "
        f"Of these, {counted.failed} never became a server, which took their owners "
        f"{words.duration(round(counted.waited))} of waiting; {counted.started} did."
    )
    for reason, number in counted.by_reason:
        terminal.say(f"  {number} × {reason}")
