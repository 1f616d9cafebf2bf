"""What KubeSpawner does not stand by itself: a hub that cannot reach the cluster, for a while."""

import asyncio
from typing import Any

from kubespawner.clients import load_config, shared_client


class StandsOutages:
    """A mixin before KubeSpawner in a class's bases.

    Attributes:
        api: KubeSpawner's client; None while there is no configuration to make one from.
    """

    api: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Make the spawner, with or without a cluster: every page of a person needs one."""
        try:
            super().__init__(*args, **kwargs)
        except Exception:
            # The last thing that KubeSpawner's own does is to read the cluster's configuration,
            # which raises what YAML, the file system and exec plugins raise.
            self.api = None
            if self.connect():
                raise

    def connect(self) -> bool:
        """Make the client if there is none yet; False while there is nothing to make it from."""
        if self.api is None:
            spawner: Any = self
            try:
                load_config(
                    host=spawner.k8s_api_host,
                    ssl_ca_cert=spawner.k8s_api_ssl_ca_cert,
                    verify_ssl=spawner.k8s_api_verify_ssl,
                )
            except Exception:  # noqa: BLE001, see above; the view says in the log what it is
                return False
            self.api = shared_client("CoreV1Api")
        return True

    async def poll(self) -> int | None:
        """Poll as KubeSpawner does; without a configuration there is nothing that could run."""
        if not self.connect():
            return 1
        status: int | None = await super().poll()  # type: ignore[misc]
        return status

    async def _start_reflector(self, kind: str, *args: Any, **kwargs: Any) -> Any:
        """Start a reflector of KubeSpawner's, and drop it where its first list fails.

        KubeSpawner keeps it, and every later start then waits for news that never come, until
        the hub is restarted. All starts wait for one future; a start that is cancelled meanwhile
        would cancel it for all of them.
        """
        spawner: Any = self
        starting = super()._start_reflector(kind, *args, **kwargs)  # type: ignore[misc]
        try:
            return await asyncio.shield(starting)
        except Exception:
            spawner.reflectors.pop(spawner._get_reflector_key(kind), None)  # noqa: SLF001
            raise
