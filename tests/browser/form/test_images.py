"""What the form says of images that the machines have already."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from localcluster import LocalCluster
from tests.browser.accessibility import findings
from tests.browser.states import Scene
from tests.browser.visiting import BY_KEY, Theme, Visit, choose, live
from tests.hub.running import RunningHub

NODES = list(BY_KEY["a100"].group.node_names())
PYTORCH = "select[name=image] option[value=pytorch]"
HINT = ".gpuspawner-field:has(select[name=image]) .gpuspawner-hint"
PLAIN, READY = "PyTorch with CUDA 12", "PyTorch with CUDA 12 (no download needed)"


@pytest.fixture(autouse=True)
def nodes(scene: Scene, reporting_cluster: LocalCluster) -> Iterator[None]:  # noqa: ARG001
    """Let the nodes of the A100 have one of the two images; they forget it afterwards."""
    pulled = [{"names": ["docker.io/library/p:1"], "sizeBytes": 2**33}]
    for node in NODES:
        patch(reporting_cluster, node, pulled)
    yield
    for node in NODES:
        patch(reporting_cluster, node, None)


def patch(cluster: LocalCluster, node: str, images: list[dict[str, object]] | None) -> None:
    cluster.api.patch(f"/api/v1/nodes/{node}/status", {"status": {"images": images}})


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_an_image_needs_no_download_with_the_accelerator_whose_machines_have_it(
    visit: Visit, hub: RunningHub, theme: Theme
) -> None:
    page = visit(hub, f"image-{theme}", theme=theme)
    live(page)

    expect(page.locator(PYTORCH)).to_have_text(PLAIN)
    choose(page, BY_KEY["a100"], image="pytorch")

    expect(page.locator(PYTORCH)).to_have_text(READY)
    expect(page.locator(HINT)).to_have_text("The machines have it already: no download needed.")
    assert findings(page) == []
    choose(page, BY_KEY["a100"], image="minimal")
    expect(page.locator(HINT)).to_be_empty()
    choose(page, BY_KEY["a10"], image="pytorch")
    expect(page.locator(PYTORCH)).to_have_text(PLAIN)
    expect(page.locator(HINT)).to_be_empty()


def test_an_open_form_notices_that_a_machine_has_removed_an_image(
    visit: Visit, hub: RunningHub, reporting_cluster: LocalCluster
) -> None:
    page = visit(hub, "image-gone")
    live(page)
    choose(page, BY_KEY["a100"])
    expect(page.locator(PYTORCH)).to_have_text(READY)

    patch(reporting_cluster, NODES[1], None)

    expect(page.locator(PYTORCH)).to_have_text(PLAIN)
