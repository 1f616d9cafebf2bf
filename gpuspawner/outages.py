"""What KubeSpawner does not stand by itself: a hub that cannot reach the cluster, for a while."""

import asyncio
from traceback import walk_tb
from typing import Any

from kubespawner.clients import load_config, shared_client

_LOADING = load_config.__wrapped__.__code__


def _is_of_configuration(error: Exception) -> bool:
    """Whether reading the cluster's configuration failed.

    It raises what YAML, the file system and exec plugins raise, and so its type tells nothing.
    """
    return any(frame.f_code is _LOADING for frame, _ in walk_tb(error.__traceback__))


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
        except Exception as error:
            # This is the last thing that KubeSpawner's own does.
            if not _is_of_configuration(error):
                raise
            self.api = None

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
            except Exception as error:
                if not _is_of_configuration(error):
                    raise
                return False  # the view says in the log what it is
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
