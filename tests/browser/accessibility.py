"""Checks of a page's accessibility and width."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

# What axe finds on JupyterHub's own page: its button's contrast, and missing landmarks.
HUBS_OWN_FINDINGS = {"color-contrast", "landmark-one-main", "region"}


def findings(page: Page) -> list[str]:
    """Return what axe finds in our part of the page, and on the page without the hub's own."""
    ours = Axe().run(page, context=".gpuspawner").response["violations"]
    everywhere = Axe().run(page).response["violations"]
    ours_elsewhere = [it for it in everywhere if it["id"] not in HUBS_OWN_FINDINGS]
    ours_elsewhere += [
        it
        for it in everywhere
        if it["id"] == "color-contrast"
        and any("btn-jupyter" not in node["html"] for node in it["nodes"])
    ]
    return [
        f"{it['id']}: {node['html'][:200]}"
        for it in (*ours, *ours_elsewhere)
        for node in it["nodes"]
    ]


def findings_in(page: Page, selector: str) -> list[str]:
    """Return what axe finds in one part of the page."""
    found = Axe().run(page, context=selector).response["violations"]
    return [f"{it['id']}: {node['html'][:200]}" for it in found for node in it["nodes"]]


def overflow(page: Page) -> int:
    """Return how many pixels the page is wider than its window."""
    return int(
        page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    )
