"""A spawner can be made whatever is wrong with the way to the cluster, and finds it later."""

from __future__ import annotations

import asyncio
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


async def test_what_is_wrong_with_a_trait_is_no_outage_without_a_configuration_either(
    write: Callable[[str], object],
) -> None:
    del write  # there is none

    with pytest.raises(TraitError):
        Spawner(_mock=True, start_timeout="soon")


async def test_a_trait_that_kubespawner_has_renamed_is_no_outage(
    write: Callable[[str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    spawner = Spawner(_mock=True)
    write(TOKEN)
    monkeypatch.delattr(KubeSpawner, "k8s_api_host")

    with pytest.raises(AttributeError):
        spawner.connect()


class Listing:
    """A reflector whose first list takes as long as a test lets it."""

    def __init__(self, **_: object) -> None:
        self.first_load_future: asyncio.Future[None] = asyncio.Future()

    async def start(self) -> None:
        """Begin to list."""


async def test_a_start_that_is_cancelled_during_the_first_list_cancels_no_other(
    write: Callable[[str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(TOKEN)
    monkeypatch.setattr(KubeSpawner, "reflectors", {})
    first, second = Spawner(_mock=True), Spawner(_mock=True)
    starts = [asyncio.ensure_future(it._start_reflector("pods", Listing)) for it in (first, second)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    starts[1].cancel()
    with pytest.raises(asyncio.CancelledError):
        await starts[1]
    [reflector] = KubeSpawner.reflectors.values()
    reflector.first_load_future.set_result(None)

    assert await starts[0] is reflector
