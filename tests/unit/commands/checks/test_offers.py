"""What the doctor says of servers that nobody can start."""

from __future__ import annotations

from pathlib import Path

from traitlets.config import Config

from gpuspawner.commands.checks import offers
from gpuspawner.commands.hub import of_files
from gpuspawner.commands.servers import listed, trying
from tests.unit.commands.files import Files

OFFERED = {"t4": {"display_name": "T4", "node_selector": {"gpu": "t4"}}}


async def test_a_cluster_without_nodes_is_one_finding_for_all_servers(tmp_path: Path) -> None:
    Files(tmp_path, [])
    hub = of_files(Config(GPUSpawner={"accelerators": OFFERED}), tmp_path)
    tried = [it async for it in trying(hub, await listed(hub))]

    (finding,) = offers.check(hub, tried, [])

    assert finding.id == "no-node"
    assert finding.text == (
        "The cluster has no nodes, so nobody can start t4 or a server without a GPU."
    )
