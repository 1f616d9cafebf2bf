"""Checks of a page's accessibility and width."""

from __future__ import annotations

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

# What axe finds on JupyterHub's own page: its button's contrast, and missing landmarks.
HUBS_OWN_FINDINGS = {"color-contrast", "landmark-one-main", "region"}


def findings(page: Page) -> list[str]:
    """Return what axe finds on the page, without what is the hub's own."""
    return [
        f"{it['id']}: {node['html'][:200]}"
        for it in Axe().run(page).response["violations"]
        for node in it["nodes"]
        if it["id"] not in HUBS_OWN_FINDINGS
        or (it["id"] == "color-contrast" and not _is_the_hubs_button(page, node))
    ]


def _is_the_hubs_button(page: Page, node: dict[str, Any]) -> bool:
    is_elsewhere = "(place) => !document.querySelector(place).closest('.gpuspawner')"
    return "btn-jupyter" in node["html"] and bool(page.evaluate(is_elsewhere, node["target"][0]))


def findings_in(page: Page, selector: str) -> list[str]:
    """Return what axe finds in the parts of the page that a selector names."""
    found = Axe().run(page, context=selector).response["violations"]
    return [f"{it['id']}: {node['html'][:200]}" for it in found for node in it["nodes"]]


def ring_contrast(page: Page, selector: str) -> float:
    """Return how much an element's outline differs from the page, as WCAG 2.2 counts it.

    An outline that isn't opaque has none.
    """
    return float(
        page.evaluate(
            """(place) => {
              const of = (element, name) => getComputedStyle(element)[name].match(/[\\d.]+/g);
              const light = (colour) => {
                const [r, g, b] = colour.slice(0, 3).map((it) => it / 255).map(
                  (it) => (it <= 0.04045 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4));
                return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
              };
              const ring = of(document.querySelector(place), "outlineColor");
              if (ring.length > 3) return 0;
              const [low, high] = [
                light(ring), light(of(document.body, "backgroundColor"))].sort((a, b) => a - b);
              return high / low;
            }""",
            selector,
        )
    )


def overflow(page: Page) -> int:
    """Return how many pixels the page is wider than its window."""
    return int(
        page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    )
