"""Reads the use of GPUs from a Prometheus that scrapes NVIDIA's DCGM exporter.

The names of its metrics are from ``etc/dcp-metrics-included.csv`` of dcgm-exporter 4.2. A scrape
that doesn't honour the exporter's labels puts ``exported_`` before those of the pod, and then
``pod`` is the exporter's own.
"""

import asyncio
import json
import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit

import msgspec
from tornado.httpclient import AsyncHTTPClient, HTTPError

from gpuspawner.kube.meta import Key
from gpuspawner.use.idle_servers import DeviceUse, Window

ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
"""The part of the time in which a GPU, or a slice, has computed: from 0 to 1."""
UTILIZATION = "DCGM_FI_DEV_GPU_UTIL"
"""The same in percent; of whole GPUs only, and there if the profiling metrics aren't."""
_DEVICE, _POD, _EXPORTED = "UUID, GPU_I_ID", "pod, namespace", "exported_pod, exported_namespace"
_BY = f"{_DEVICE}, {_POD}, {_EXPORTED}"
_PATIENCE = 20.0
"""How long Prometheus may take for one answer, in seconds."""
_HELD_SECONDS = 300
"""Whoever had a device so many seconds ago has it now: Prometheus takes samples of that age for
present ones too (``--query.lookback-delta``), and some scrapes may fail."""
_STEPS, _LEAST_STEP = 60, 5
"""In how many steps a window is looked at, and the shortest of them in seconds."""


class UseUnknownError(Exception):
    """Nobody can say whether GPUs are used; the text says why."""


class _Sample(msgspec.Struct, frozen=True):
    metric: dict[str, str]
    value: tuple[float, str]


class _Data(msgspec.Struct, frozen=True):
    result: list[_Sample] = []


class _Answer(msgspec.Struct, frozen=True):
    """An answer, as Prometheus' "HTTP API" has it, and VictoriaMetrics' cluster version.

    Attributes:
        warnings: Errors despite which there is data, such as those of a remote read.
        is_partial: Whether one of VictoriaMetrics' nodes hasn't answered.
    """

    data: _Data
    warnings: list[str] | None = None
    is_partial: bool = msgspec.field(default=False, name="isPartial")


class Prometheus:
    """One Prometheus.

    Args:
        address: Without the path of its API. It may have a name and a password, percent-encoded.
        labels: Only series with these labels count.
    """

    def __init__(self, address: str, labels: Mapping[str, str] = {}) -> None:
        parts = urlsplit(address)
        login, _, self._host = parts.netloc.rpartition("@")
        self._address = parts._replace(netloc=self._host, path=parts.path.rstrip("/")).geturl()
        # Decoded here: only one of tornado's two clients does so with those of an address.
        name, _, password = map(unquote, login.partition(":"))
        named: dict[str, Any] = {"auth_username": name, "auth_password": password}
        self._login = named if login else {}
        self._labels = _matchers(labels)

    async def window(self, seconds: float) -> Window:
        """Return the use over the last *seconds* of all devices, by the pods that have them now.

        Raises:
            UseUnknownError: It isn't known.
        """
        step = max(_LEAST_STEP, math.ceil(seconds / _STEPS))
        devices, times = list[tuple[Key, DeviceUse]](), [0.0]
        for metric, whole in ((ENGINE, 1), (UTILIZATION, 100)):
            series = self._series(metric)
            used = await self._ask(f"max_over_time({series}[{seconds:.0f}s]) / {whole}")
            known = f"({self._known(metric, whole)})[{seconds:.0f}s:{step}s]"
            counted = await self._ask(f"count_over_time({known})")
            held = await self._ask(f"last_over_time({series}[{_HELD_SECONDS}s])")
            steps = max(1, seconds // step)
            # In a thread: there may be thousands of devices.
            found = await asyncio.to_thread(_devices, used, counted, held, steps)
            # Of a slice, utilization says nothing.
            devices += [it for it in found if metric is ENGINE or not it[1].name[1]]
            times += [it.value[0] for it in (*used, *counted)]
        return Window(seconds, max(times), _by_pod(devices))

    def _known(self, metric: str, whole: int) -> str:
        """Return what is one series for each device and pod, at the times when its use is known.

        A new pod of the exporter, as after an update, brings series of its own: for its address,
        and unless Prometheus honours the exporter's labels, for its name too.
        """
        each = (
            f"max by ({_DEVICE}, {names}) (({self._series(metric, has)} >= 0) <= {whole})"
            for has, names in (('exported_pod!=""', _EXPORTED), ('exported_pod=""', _POD))
        )
        return " or ".join(each)

    def _series(self, metric: str, *also: str) -> str:
        matchers = ",".join([*self._labels, *also])
        return f"{metric}{{{matchers}}}" if matchers else metric

    async def _ask(self, query: str) -> list[_Sample]:
        try:
            body = urlencode({"query": f"max by ({_BY}) ({query})"})
            answer = await AsyncHTTPClient().fetch(
                f"{self._address}/api/v1/query",
                method="POST",
                body=body,
                headers={"Content-Type": "application/x-www-form-urlencoded"},
                request_timeout=_PATIENCE,
                connect_timeout=_PATIENCE,
                follow_redirects=False,
                **self._login,
            )
            # In a thread: there may be megabytes of it.
            read = await asyncio.to_thread(msgspec.json.decode, answer.body, type=_Answer)
        except (HTTPError, OSError, ValueError, RecursionError, msgspec.MsgspecError) as error:
            raise UseUnknownError(f"{self._host}: {error}") from error
        if read.warnings or read.is_partial:
            why = ", ".join(read.warnings or ["isPartial"])
            raise UseUnknownError(f"{self._host}: the answer is incomplete: {why}")
        return read.data.result


def _matchers(labels: Mapping[str, str]) -> list[str]:
    """Return PromQL's matchers of labels, with texts as JSON has them, but no surrogates."""
    return [f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in labels.items()]


def _devices(
    used: list[_Sample], counted: list[_Sample], held: list[_Sample], steps: float
) -> list[tuple[Key, DeviceUse]]:
    """Return the devices with the pods that have them now.

    In a window there are also the pods that had a device before, and of a GPU that was free, the
    exporter's own (unless Prometheus honours its labels).
    """
    counts, now = dict(map(_value, counted)), dict(map(_value, held))
    found = []
    for whose, number in map(_value, used):
        pod, name = whose
        if pod is None or whose not in now or math.isnan(number):
            continue
        known = min(1.0, counts.get(whose, 0.0) / steps)
        # An exporter may say anything: more than all of a GPU is all of it.
        found.append((pod, DeviceUse(name, min(number, 1.0), known)))
    return found


def _value(sample: _Sample) -> tuple[tuple[Key | None, tuple[str, str]], float]:
    labels = sample.metric
    device = labels.get("UUID", ""), labels.get("GPU_I_ID", "")
    return (_pod(labels), device), _number(sample.value[1])


def _pod(labels: Mapping[str, str]) -> Key | None:
    """Return the namespace and name of the pod that has a device; None if none has."""
    before = "exported_" if "exported_pod" in labels or "exported_namespace" in labels else ""
    namespace, name = labels.get(f"{before}namespace", ""), labels.get(f"{before}pod", "")
    return (namespace, name) if namespace and name else None


def _number(written: str) -> float:
    try:
        return float(written)
    except ValueError:
        return math.nan


def _by_pod(found: list[tuple[Key, DeviceUse]]) -> Mapping[Key, list[DeviceUse]]:
    """Return each pod's devices, each once: by the metric that says more of it."""
    best: dict[Key, dict[tuple[str, str], DeviceUse]] = defaultdict(dict)
    for pod, it in found:  # if one metric says that a device is used, it is
        other = best[pod].get(it.name, it)
        known = max(it.known, other.known)
        best[pod][it.name] = DeviceUse(it.name, max(it.used, other.used), known)
    return {pod: list(its.values()) for pod, its in best.items()}
