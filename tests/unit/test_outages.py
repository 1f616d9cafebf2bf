"""A spawner can be made whatever is wrong with the way to the cluster, and finds it later."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from kubespawner import KubeSpawner
from kubespawner.clients import load_config
from traitlets import TraitError

from gpuspawner.outages import StandsOutages

EXEC_PLUGIN = """
current-context: here
contexts: [{name: here, context: {cluster: it, user: me}}]
clusters: [{name: it, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: me, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: no-such}}}]
"""
TOKEN = """
current-context: here
contexts: [{name: here, context: {cluster: it, user: me}}]
clusters: [{name: it, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: me, user: {token: abc}}]
"""


class Spawner(StandsOutages, KubeSpawner):  # type: ignore[misc]
    """KubeSpawner, and nothing of ours but this."""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], object]:
    """Write the kubeconfig; until then there is none."""
    load_config.cache_clear()  # it keeps what was read once, for good
    monkeypatch.setattr(
        "kubernetes_asyncio.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION",
        str(tmp_path / "config"),
    )
    return (tmp_path / "config").write_text


@pytest.mark.parametrize("text", [None, "", "just text", "{broken: [", EXEC_PLUGIN])
async def test_a_configuration_that_cannot_be_read_is_an_outage(
    write: Callable[[str], object], text: str | None
) -> None:
    if text is not None:
        write(text)

    spawner = Spawner(_mock=True)

    assert not spawner.connect()
    assert await spawner.poll() == 1
    write(TOKEN)
    assert spawner.connect()


async def test_what_is_wrong_with_a_trait_is_no_outage(write: Callable[[str], object]) -> None:
    write(TOKEN)

    with pytest.raises(TraitError):
        Spawner(_mock=True, start_timeout="soon")
