"""What a thousand open forms cost: `python -m tests.benchmarks.open_forms [FORMS NODES PODS]`.

Forms of as many users follow a real hub through the real proxy, while pods change ten times a
second. Most changes aren't shown on any form; a GPU that is taken or freed is shown on all. Printed
are the hub's processor time, the requests to the API server, and how long such a change takes until
the forms have it, counted from before the API server is asked for the change. The baseline is the
hub without forms, and forms that ask every ten seconds, as they do if a stream fails: fewer of
them, because a hub can't answer a thousand. It asserts nothing.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import resource
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gpuspawner.web.open_streams import LIFE_SECONDS
from localcluster import LocalCluster
from tests.benchmarks.changing_pods import ChangingPods
from tests.benchmarks.clusters import MODELS
from tests.benchmarks.filled import filled_cluster
from tests.hub.running import API_TOKEN, RunningHub, running_hub

FORMS, NODES, PODS = 1_000, 500, 4_000
ASKING = 100
"""Forms of the baseline; its figure is scaled."""
EVERY = 10.0
"""How often a form without a stream asks, in seconds."""
CHANGES_A_SECOND = 10
SECONDS = 20.0
"""How long each row is measured."""
SHOWN_EVERY = 4.0
CONFIGURATION = f"""
import gpuspawner
c.KubeSpawner.namespace = "default"
c.GPUSpawner.accelerators = {{
    "one": {{"node_selector": {{"kubernetes.io/hostname": "node-0"}},
            "tolerations": [{{"operator": "Exists"}}]}},
    **{{
        f"model-{{number}}": {{
            "node_selector": {{"nvidia.com/gpu.product": model}},
            "tolerations": [{{"operator": "Exists"}}],
            "counts": [1, 2, 4, 8],
        }}
        for number, model in enumerate({MODELS})
    }},
}}
c.GPUSpawner.images = {{f"image-{{n}}": {{"image": f"i:{{n}}"}} for n in range(4)}}
c.GPUSpawner.memory_choices = ["8G", "16G", "32G"]
c.GPUSpawner.cpu_choices = [1, 2, 4]
# One client opens all streams here, in place of as many users.
from gpuspawner.web import handlers
handlers.StreamHandler._crowd = handlers.Crowd(most_of_one=100_000)
gpuspawner.configure(c)
"""


class Form(asyncio.Protocol):
    """A form that follows its stream, and asks for a decision if the test says so.

    Attributes:
        came: When its last event came, by the monotonic clock.
        events: How many have come.
        spread: The seconds over which forms spread what they ask next.
    """

    def __init__(self, request: bytes) -> None:
        self._request = request
        self.came = 0.0
        self.events = 0
        self.spread = 0.0
        self.is_over = False

    def connection_made(self, transport: Any) -> None:
        transport.write(self._request)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if found := re.search(rb"retry: (\d+)\ndata: ", data):
            self.came = time.monotonic()
            self.events += 1
            self.spread = int(found[1]) / 1000

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.is_over = True


@dataclass
class Row:
    """What was measured in one part, per second.

    Attributes:
        late: Seconds until a change was shown, for each form and change.
    """

    name: str
    processor: float
    requests: float
    dry_runs: float
    late: list[float] = field(default_factory=list)

    def line(self) -> str:
        """Return its line of the table."""
        late = "| |"
        if self.late:
            late = f"{statistics.median(self.late):.2f} s | {max(self.late):.2f} s |"
        return (
            f"| {self.name} | {100 * self.processor:.1f} % | {self.requests:.1f} "
            f"| {self.dry_runs:.1f} | {late}"
        )


class Bench:
    """A hub, its cluster, and the forms of its users."""

    def __init__(self, hub: RunningHub, cluster: LocalCluster, people: int) -> None:
        self._hub = hub
        self._cluster = cluster
        self.people = people
        self._names = [f"user-{number}" for number in range(people)]
        self._address = urlsplit(hub.url)
        self._pods = ChangingPods(cluster)
        self.forms: list[Form] = []
        self.answers = Counter[str]()

    def register(self) -> None:
        """Create the users."""
        for at in range(0, len(self._names), 200):
            self._hub.api("POST", "/users", {"usernames": self._names[at : at + 200]})

    async def open(self) -> None:
        """Open a form for each user, a few at a time, and wait until each has its first event."""
        loop, address = asyncio.get_running_loop(), self._address
        for at in range(0, len(self._names), 20):
            for name in self._names[at : at + 20]:
                request = self._request("GET", f"stream/{name}/")
                _, form = await loop.create_connection(
                    lambda request=request: Form(request), address.hostname, address.port
                )
                self.forms.append(form)
            await self._until(lambda: all(form.events for form in self.forms))

    async def close(self) -> None:
        """Close all forms."""
        for form in self.forms:
            form.transport.close()
        self.forms.clear()
        await asyncio.sleep(1)  # until the hub has noticed

    async def measure(self, name: str, *beside: Coroutine[Any, Any, None]) -> Row:
        """Change pods, and do something else beside it; return what it has cost."""
        before, own, began = self._counts(), self._pods.requests, time.monotonic()
        await asyncio.gather(self._pods.change(SECONDS, CHANGES_A_SECOND), *beside)
        took = time.monotonic() - began
        spent = [(after - at) / took for after, at in zip(self._counts(), before, strict=True)]
        row = Row(name, *spent)
        row.requests -= (self._pods.requests - own) / took
        return row

    async def show(self, late: list[float]) -> None:
        """Take and free a GPU in turn; note how long it took until each form had it."""
        for number in range(round(SECONDS / SHOWN_EVERY) // 2 * 2):
            began = time.monotonic()
            await self._shown(self._pods.let_go if number % 2 else self._pods.hold, late)
            await asyncio.sleep(max(0.0, SHOWN_EVERY - (time.monotonic() - began)))

    async def flip(self, late: list[float]) -> None:
        """Take a GPU that everybody has chosen; each form then asks whether its choice fits."""
        await self._shown(self._pods.hold, late)
        asked = [
            self._ask("decision", name, form.spread * random.random())
            for name, form in zip(self._names, self.forms, strict=True)
        ]
        await asyncio.gather(*asked)
        await asyncio.to_thread(self._pods.let_go)

    async def _shown(self, change: Callable[[], None], late: list[float]) -> None:
        """Change what forms show, and wait until each has it."""
        before, began = [form.events for form in self.forms], time.monotonic()
        await asyncio.to_thread(change)
        await self._until(
            lambda: all(it.events > n for it, n in zip(self.forms, before, strict=True))
        )
        late.extend(form.came - began for form in self.forms)

    async def ask_again_and_again(self, forms: int) -> None:
        """Ask as forms without a stream do: for the states, and then for a decision."""

        async def form(name: str) -> None:
            at = time.monotonic() + EVERY * random.random()
            for _ in range(round(SECONDS / EVERY)):
                await asyncio.sleep(max(0.0, at - time.monotonic()))
                await self._ask("states", name)
                await self._ask("decision", name)
                at += EVERY

        async with asyncio.timeout(2 * SECONDS):
            await asyncio.gather(*map(form, self._names[:forms]))

    async def _ask(self, what: str, name: str, after: float = 0.0) -> None:
        await asyncio.sleep(after)
        body = b'{"accelerator": "one", "gpus": 1}' if what == "decision" else b""
        request = self._request("POST" if body else "GET", f"{what}/{name}/", body)
        reader, writer = await asyncio.open_connection(self._address.hostname, self._address.port)
        writer.write(request)
        self.answers[(await reader.readline()).split()[1].decode()] += 1
        await reader.read()
        writer.close()

    def _request(self, method: str, path: str, body: bytes = b"") -> bytes:
        close = "" if path.startswith("stream") else "Connection: close\r\n"
        return (
            f"{method} /hub/gpuspawner/{path} HTTP/1.1\r\nHost: {self._address.netloc}\r\n{close}"
            f"Authorization: token {API_TOKEN}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        ).encode() + body

    def _counts(self) -> tuple[float, float, float]:
        """Return the hub's processor seconds, and the API server's requests and dry runs."""
        metrics = self._cluster.kubectl("get", "--raw", "/metrics")
        counted = re.findall(r"^apiserver_request_total\{(.*)\} (\d+)$", metrics, re.MULTILINE)
        dry = sum(int(count) for labels, count in counted if 'dry_run="All"' in labels)
        return processor(self._hub), sum(int(count) for _, count in counted), dry

    async def _until(self, condition: Any) -> None:
        async with asyncio.timeout(60):
            while not condition():  # noqa: ASYNC110, a thousand forms set no event
                await asyncio.sleep(0.02)


def processor(hub: RunningHub) -> float:
    """Return a hub's processor time so far, in seconds."""
    fields = Path(f"/proc/{hub.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(hub: RunningHub) -> float:
    """Return a hub's memory, in MB."""
    status = Path(f"/proc/{hub.process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]


async def compare(bench: Bench, hub: RunningHub) -> None:
    """Measure each part, and print the table."""
    forms = bench.people
    rows = [await bench.measure("no forms")]
    asking = await bench.measure("", bench.ask_again_and_again(ASKING))
    idle = rows[0].processor
    asking.name = f"{ASKING} forms that ask every {EVERY:.0f} s"
    rows.append(asking)
    more = (asking.processor - idle) * forms / ASKING
    before = memory(hub), processor(hub)
    await bench.open()
    opened = processor(hub) - before[1]
    grown = memory(hub) - before[0]
    rows.append(await bench.measure(f"{forms} forms, nothing that they show changes"))
    late: list[float] = []
    shown = f"{forms} forms, all change every {SHOWN_EVERY:.0f} s"
    rows.append(await bench.measure(shown, bench.show(late)))
    rows[-1].late = late
    late = []
    rows.append(await bench.measure(f"{forms} forms, each asks once more", bench.flip(late)))
    rows[-1].late = late
    await bench.close()
    rows.append(await bench.measure("no forms, afterwards"))
    print("| part | hub, of a core | API requests a second | dry runs | median | longest |")
    print("| --- |" + " ---: |" * 5)
    for row in rows:
        print(row.line())
    print(f"\nScaled to {forms} forms that ask: {100 * (idle + more):.0f} % of a core.")
    for row in rows[2:5]:
        share = (row.processor - idle) / more
        added = f"{100 * (row.processor - idle):.1f} % more than without forms"
        print(f"{row.name}: {added}, {share:.4f} of that")
    print(f"Answers to questions, by status: {dict(bench.answers)}")
    print(f"Opening a form: {1000 * opened / forms:.1f} ms, {1000 * grown / forms:.0f} kB")
    again = opened / (0.85 * LIFE_SECONDS)
    print(f"Each is opened again after {LIFE_SECONDS:.0f} s at most: {100 * again:.1f} % of a core")


def main() -> None:
    """Make the cluster and the hub, and print the table."""
    forms, nodes, pods = map(int, sys.argv[1:4]) if len(sys.argv) > 3 else (FORMS, NODES, PODS)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        print(f"{forms} forms", flush=True)
        cluster = stack.enter_context(filled_cluster(folder, nodes, pods))
        (folder / "hub").mkdir()
        environment = {"KUBECONFIG": str(cluster.kubeconfig)}
        hub = stack.enter_context(
            running_hub(folder / "hub", CONFIGURATION, environment=environment)
        )
        hub.until_it_sees_the_cluster()
        bench = Bench(hub, cluster, forms)
        bench.register()
        asyncio.run(compare(bench, hub))


if __name__ == "__main__":
    main()
