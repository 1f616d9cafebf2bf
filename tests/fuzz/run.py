"""Sends hostile bodies to a hub in this process, as REST starts do.

The hub reads each body as that of a REST start. The rest of a start writes to its database a dozen
times, which takes nearly all of the time. So most bodies then go straight to the spawner, as the
hub would pass them, and some go all the way.
"""

from __future__ import annotations

import asyncio
import secrets
import traceback
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import pytest
from jupyterhub.apihandlers.users import UserServerAPIHandler
from jupyterhub.user import User
from jupyterhub.utils import maybe_future
from tornado import web
from traitlets.config import Config

from gpuspawner import GPUSpawner, runtime
from gpuspawner.compat import pods
from gpuspawner.kube.objects import Manifest
from gpuspawner.start.refusal import Refusal
from localcluster import LocalCluster
from tests.fuzz import findings
from tests.fuzz.bodies import bodies
from tests.fuzz.rest import options_of, rest_start
from tests.fuzz.wire import wire
from tests.hub.in_process import hub_in_process
from tests.hub.option_sets import OFFERS

# One body of so many goes the whole way, and one is rendered as a form.
_WHOLE_WAY_OF = 50
_PAGE_SIZE = 4096


class MadeError(Exception):
    """The spawner made the pod; the start ends here."""

    def __init__(self, pod: Manifest) -> None:
        super().__init__()
        self.pod = pod


class StopsAtThePod(GPUSpawner):
    """A spawner that makes the pod's manifest and then stops."""

    async def start(self) -> None:
        raise MadeError(pods.plain(await self.get_pod_manifest()))


@dataclass
class Report:
    """The outcome of a run.

    Attributes:
        answers: How often the hub gave each answer.
        findings: What was wrong, with the number of the body.
        grown: Growth of the process from a quarter of the run to its end, in bytes.
    """

    answers: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    grown: int = 0


async def run(cluster: LocalCluster, folder: Path, *, seed: int, count: int) -> Report:
    """Send *count* bodies, and check every pod, answer and page that results."""
    namespace = f"fuzz-{secrets.token_hex(4)}"
    cluster.api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    c = Config()
    c.KubeSpawner.namespace = namespace
    c.KubeSpawner.image = "lab:1"
    c.GPUSpawner.update(dict(OFFERS))
    c.JupyterHub.hub_connect_url = "http://hub:8081"
    report = Report()
    with pytest.MonkeyPatch.context() as patch:
        async with hub_in_process(patch, folder, cluster.kubeconfig, StopsAtThePod, c) as running:
            user = running.user("mallory")
            spawner: StopsAtThePod = user.spawner
            assert await runtime.current(spawner).view.first_list(60)
            stock = pods.plain(await super(GPUSpawner, spawner).get_pod_manifest())
            early = 0
            sent = zip(wire(seed), bodies(seed), strict=True)
            for number, (body, options) in enumerate(islice(sent, count)):
                whole_way = number % _WHOLE_WAY_OF == 0
                start = _spawn if whole_way else _hand_over
                request = rest_start(running.app, body)
                found = await _answer(start(user, request), stock, report)
                running.app.db.rollback()  # as the hub does at each request's end
                if whole_way:
                    found += await _page(user, options)
                report.findings += [f"body {number}: {what}" for what in found]
                if number == count // 4:
                    early = _resident()
            report.grown = _resident() - early
    return report


async def _spawn(user: User, request: UserServerAPIHandler) -> None:
    await user.spawn(options=options_of(request), handler=request)


async def _hand_over(user: User, request: UserServerAPIHandler) -> None:
    """Do what `User.spawn` does with a spawner after it has written to the database."""
    spawner: StopsAtThePod = user.spawner
    options = options_of(request)
    spawner.handler = request
    spawner.user_options = {} if options is None else options
    spawner.clear_state()
    try:
        await spawner._run_apply_user_options(spawner.user_options)
        await maybe_future(spawner.run_pre_spawn_hook())
        await spawner.start()
    finally:
        spawner.handler = None
        spawner.clear_state()


async def _answer(start: Coroutine[None, None, None], stock: Manifest, report: Report) -> list[str]:
    try:
        # As in the hub, each request is a task with its own context.
        await asyncio.create_task(start)
    except MadeError as made:
        report.answers["made"] += 1
        return list(findings.of_pod(made.pod, stock))
    except Refusal as refusal:
        report.answers[refusal.slug] += 1
        return list(findings.of_refusal(refusal))
    except web.HTTPError as error:
        report.answers[f"HTTP {error.status_code}"] += 1
        return [] if 400 <= error.status_code < 500 else [repr(error)]
    except Exception as error:  # noqa: BLE001, each is a finding: HTTP 500
        if _is_the_hubs_own(error):
            report.answers["failed before us"] += 1
            return []
        report.answers["failed"] += 1
        return [repr(error)]
    return ["a server was started"]


def _is_the_hubs_own(error: Exception) -> bool:
    """Return whether no code of ours raised it: JupyterHub can't store or decode every body."""
    frames = traceback.walk_tb(error.__traceback__)
    return not any(frame.f_globals["__name__"].startswith("gpuspawner") for frame, _ in frames)


async def _page(user: User, body: object) -> list[str]:
    """Return the form that the hub renders again after these options were sent by form."""
    sent = body if isinstance(body, dict) else {"accelerator": body}
    form: dict[str, list[object]] = {
        str(name): [value if isinstance(value, str) else repr(value)[:2000]]
        for name, value in sent.items()
    }

    async def ask() -> list[str]:
        spawner: GPUSpawner = user.spawner
        try:
            await spawner.run_options_from_form(form)
        except Refusal as refusal:
            drawn = await spawner.get_options_form()
            return [*findings.of_refusal(refusal), *findings.of_page(drawn)]
        return list(findings.of_page(await spawner.get_options_form()))

    return await asyncio.create_task(ask())


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_SIZE
