"""Loops of one user at addresses that browsers call, while another user starts servers."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import requests

from tests.attack.attack import LOOPS, STARTS, Attack
from tests.attack.stage import own_hub
from tests.hub.lines import QUEUE, WAITING
from tests.hub.running import API_TOKEN, RunningHub

ADDRESSES: Mapping[str, tuple[str, str]] = {
    "the schema": ("GET", "schema/mallory/"),
    "the page of the line": ("GET", "line/mallory/"),
    "leaving the line": ("POST", "line/mallory/"),
    "stopping a server": ("POST", "stop/mallory/other?form="),
}


def ratios(folder: Path) -> dict[str, float]:
    """Return for each address how many times as long another user's start takes meanwhile."""
    with own_hub(folder, QUEUE) as hub:
        attack = Attack(hub.url, API_TOKEN)
        attack.prepare()
        hub.start_until_ready("holder", {"accelerator": "t4"})
        hub.start("mallory", WAITING)
        usual = statistics.median(attack.seconds_of_a_start() for _ in range(STARTS))
        found = {}
        for name, (method, path) in ADDRESSES.items():
            with _loops(hub, method, path) as answers:
                meanwhile = statistics.median(attack.seconds_of_a_start() for _ in range(STARTS))
            found[name] = meanwhile / usual
            print(f"{name}: {found[name]:.2f} times as long, {dict(answers.most_common())}")
    return found


@contextmanager
def _loops(hub: RunningHub, method: str, path: str) -> Iterator[Counter[int]]:
    """Let Mallory's browser call the address in many loops until the block ends."""
    over, answered, mallory = Event(), Counter[int](), hub.person("mallory")
    url = f"{hub.url}/hub/gpuspawner/{path}"

    def loop() -> None:
        with requests.Session() as session:
            session.trust_env = False
            session.cookies = mallory.session.cookies
            session.headers["X-XSRFToken"] = mallory.xsrf
            while not over.is_set():
                try:
                    answer = session.request(method, url, allow_redirects=False, timeout=120)
                    answered[answer.status_code] += 1
                except requests.RequestException:
                    answered[0] += 1

    with ThreadPoolExecutor(LOOPS) as threads:
        try:
            loops = [threads.submit(loop) for _ in range(LOOPS)]
            yield answered
        finally:
            over.set()
            for each in loops:
                each.result()
