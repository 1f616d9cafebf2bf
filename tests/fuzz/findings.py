"""Checks that must hold for every body: of the pod, of the answer and of the page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

from gpuspawner.kube.objects import Manifest
from gpuspawner.offers.offers import Offers
from gpuspawner.start.refusal import Refusal
from tests.hub.option_sets import GPU, OFFERS

_OFFERS = Offers.parse(**OFFERS)
_OURS = re.compile(r"</?strong>")
_TAGS = frozenset({
    "style", "div", "p", "fieldset", "legend", "input", "label", "span", "svg", "path", "circle",
    "bdi", "i", "select", "option", "button", "strong", "link", "script", "symbol", "use",
})  # fmt: skip
"""The elements of our templates; they contain no `img` and no `iframe`."""
_ALWAYS = {"terminationMessagePolicy": "FallbackToLogsOnError"}
"""What every server's container has with us, whatever its owner sends."""
_ENTITY = re.compile(r"&(?:amp|lt|gt|quot|#39|#34|#x27);")


def of_pod(pod: Manifest, stock: Manifest) -> Iterator[str]:
    """Yield what a pod has that no user may choose."""
    server, usual = pod["spec"]["containers"][0], {**stock["spec"]["containers"][0], **_ALWAYS}
    images = {image.image for image in _OFFERS.images.values()}
    written_in = _OFFERS.unlisted_image and _OFFERS.unlisted_image.image(server["image"])
    if server["image"] not in images and not written_in:
        yield f"image {server['image']!r}"
    yield from _of_resources(server["resources"])
    fixed = {"image", "resources", "env"}
    for name in (server.keys() | usual.keys()) - fixed:
        if server.get(name) != usual.get(name):
            yield f"the container's {name} {server.get(name)!r}"
    placed = {"containers", "nodeSelector"}
    for name in (pod["spec"].keys() | stock["spec"].keys()) - placed:
        if pod["spec"].get(name) != stock["spec"].get(name):
            yield f"the pod's {name} {pod['spec'].get(name)!r}"


def _of_resources(resources: Manifest) -> Iterator[str]:
    memory = {m.bytes for c in _all_choices() for m in c.sizes}
    for amounts in resources.values():
        for resource, amount in amounts.items():
            match resource:
                case "memory":
                    offered = any(amount == text for text in _texts(memory))
                case "cpu":
                    offered = amount in {"1", "8", "32"}
                case _:
                    offered = resource == GPU and amount in {"1", "2", "4"}
            if not offered:
                yield f"{resource} {amount!r}"


def _all_choices() -> Iterator[Any]:
    yield _OFFERS.choices(None)
    for accelerator in _OFFERS.accelerators.values():
        yield _OFFERS.choices(accelerator)


def _texts(sizes: set[int]) -> Iterator[str]:
    for size in sizes:
        yield f"{size // 2**30}Gi"


def of_refusal(refusal: Refusal) -> Iterator[str]:
    """Yield what is wrong with an answer: its status, or parts of the body that it repeats."""
    if not 400 <= refusal.status_code < 500:
        yield f"status {refusal.status_code}"
    if not refusal.text.isprintable() or len(refusal.text) > 3000:
        yield f"text {refusal.text[:200]!r}"
    html = _OURS.sub("", str(refusal.jupyterhub_html_message))
    if re.search("[<>\"']", html) or "&" in _ENTITY.sub("", html):
        yield f"HTML {html[:200]!r}"


class _Shape(HTMLParser):
    """Collects the elements of a page, with the names of their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[tuple[str, tuple[str, ...]]] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add((tag, tuple(sorted(name for name, _ in attrs))))


def of_page(page: str) -> Iterator[str]:
    """Yield the elements of a page that none of our templates contains."""
    shape = _Shape()
    shape.feed(page)
    for tag, names in shape.found:
        if tag not in _TAGS or any(name.startswith("on") for name in names):
            yield f"<{tag} {' '.join(names)}>"
