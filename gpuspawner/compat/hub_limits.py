"""Limits of JupyterHub and KubeSpawner that defeat each other. Pure.

Read in JupyterHub 5.5.0 and 6.1.1 (`user.py`, `handlers/base.py`) and in `_start` of KubeSpawner
7.0.0 and 7.1.0.
"""

from collections.abc import Iterator, Mapping
from enum import Enum, auto
from typing import Protocol

import msgspec
from traitlets.config.loader import LazyConfigValue

# Pulling an image with CUDA to a new node takes minutes.
_SHORT_PREPARING = 120
_PREPARING = 600.0
# The usual limit of proxies in front of a hub for an answer: proxy_read_timeout of nginx, say.
_PROXY_PATIENCE = 60
# JupyterHub's own default for `tornado_settings["slow_spawn_timeout"]`.
_SLOW_SPAWN = 10.0


def preparing_seconds(configured: float | None, starting: float) -> float:
    """Return how long volumes and images may take, given how long containers may.

    A hub without GPUSpawner has one timeout for all, and needs a long one for large images.
    """
    return max(_PREPARING, starting) if configured is None else configured


class StartLimits(Protocol):
    """The traits of a spawner that limit a start."""

    start_timeout: int
    http_timeout: int
    scheduling_timeout: float
    preparing_timeout: float | None
    k8s_api_request_timeout: int
    k8s_api_request_retry_timeout: int


class Limits(msgspec.Struct, frozen=True):
    """The limits, in seconds.

    Attributes:
        start: All phases of a start together.
        preparing: How long volumes and images may take.
        slow_spawn: How long the hub waits for a start before it shows the progress page.
        api_request: How long KubeSpawner waits for one answer of the API server.
        api_retries: How long KubeSpawner repeats a request.
        admission: How long a dry run may take.
    """

    start: float
    preparing: float
    slow_spawn: float
    api_request: float
    api_retries: float
    admission: float

    @classmethod
    def of(cls, settings: StartLimits, tornado_settings: object, admission: float) -> "Limits":
        """Read the limits; `tornado_settings` is JupyterHub's trait, if it is set."""
        if isinstance(tornado_settings, LazyConfigValue):  # c.JupyterHub.tornado_settings.update()
            tornado_settings = tornado_settings.to_dict().get("update")
        given = tornado_settings if isinstance(tornado_settings, Mapping) else {}
        slow_spawn = given.get("slow_spawn_timeout")
        preparing = preparing_seconds(settings.preparing_timeout, settings.start_timeout)
        return cls(
            start=settings.scheduling_timeout
            + preparing
            + settings.start_timeout
            + settings.http_timeout,
            preparing=preparing,
            slow_spawn=slow_spawn if isinstance(slow_spawn, int | float) else _SLOW_SPAWN,
            api_request=settings.k8s_api_request_timeout,
            api_retries=settings.k8s_api_request_retry_timeout,
            admission=admission,
        )


class Conflict(Enum):
    """How limits defeat each other.

    Attributes:
        SHORT_PREPARING: A start may end before its image is pulled.
        LATE_PROGRESS: Users see no progress page before a proxy gives up.
        LONG_RETRIES: Repeating one request to the API server can take the whole start.
        SHORT_REQUEST: KubeSpawner repeats a slow creation, finds the first one's pod, and deletes
            it. A pod whose dry run passes in time may be created too slowly.
    """

    SHORT_PREPARING = auto()
    LATE_PROGRESS = auto()
    LONG_RETRIES = auto()
    SHORT_REQUEST = auto()


def conflicts(limits: Limits) -> Iterator[Conflict]:
    """Yield how these limits defeat each other."""
    if limits.preparing < _SHORT_PREPARING:
        yield Conflict.SHORT_PREPARING
    if limits.slow_spawn > _PROXY_PATIENCE:
        yield Conflict.LATE_PROGRESS
    if limits.api_retries >= limits.start:
        yield Conflict.LONG_RETRIES
    if limits.api_request <= limits.admission:
        yield Conflict.SHORT_REQUEST
