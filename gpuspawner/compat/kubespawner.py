"""KubeSpawner's private names: its steps of a start, its client, its profiles.

Read in ``kubespawner/spawner.py`` and ``kubespawner/clients.py`` of 7.0.0 and 7.1.0.
"""

import inspect
import math
import sys
import time
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import dropwhile
from traceback import walk_tb
from typing import Any

import aiohttp
from kubernetes_asyncio.client import ApiException
from kubespawner import KubeSpawner
from kubespawner.clients import load_config, shared_client

from gpuspawner.compat.class_traits import default_of
from gpuspawner.compat.reflecting import works

MAKING = ("get_pod_manifest", "load_user_options", "_load_profile", "_apply_overrides")
"""The methods that make a profile's pod."""
PREPARING = ("run_auth_state_hook", "apply_group_overrides")
"""The methods of a start that come before the second gate."""
STARTING = (
    "run_pre_spawn_hook",
    "start",
    "_start",
    "_ensure_namespace",
    "_make_create_pod_request",
)
"""The methods of a start that come after the second gate, or around it."""
OF_EVENTS = ("events", "event_reflector", "_start_watching_events")
"""The names by which code gets at the events of a spawner's pod."""
_DRAWING = ("_render_options_form", "_validate_user_options", "_get_initialized_profile_list")
"""The methods that draw the form of profiles."""
DRAWING_LATE = "_render_options_form_dynamically"
"""The method that draws the form of a function's profiles."""
_OURS = __name__.partition(".")[0]
_CALLING = frozenset({"_start", "get_pod_manifest", "load_user_options", "_load_profile"})
"""KubeSpawner's methods that await what hooks and functions of administrators return."""
_STEPS = frozenset({"kubespawner", _OURS})
"""The packages whose code calls that of administrators."""
_LIBRARIES = sys.stdlib_module_names | {
    *("aiohttp", "jinja2", "jupyterhub", "kubernetes_asyncio", "sqlalchemy", "tornado", "traitlets")
}
"""The packages that these, and administrators, call."""

_NOT_NOW = (429, 502, 503, 504)
"""The statuses of an API server that is busy, or about to end, and of what is in front of it."""

_FORBIDDEN = 403
_NEW_SECONDS = 10.0
"""How long after a lost request the API server may not know yet what the hub may do."""
NO_RIGHT = " cannot create resource "
"""What the API server says, before a quoted name, to a client that has no right to create it."""
_EPISODE_SECONDS = 60.0
"""After how long such an answer may again be that of an API server that has just started."""


class Stock:
    """A spawner's methods as KubeSpawner has them, without gpuspawner's.

    Attributes:
        kubespawner: ``super()`` as gpuspawner's class sees it. Its public methods are used as they
            are; those with private names have names here.
    """

    def __init__(self, kubespawner: Any, spawner: Any) -> None:
        self.kubespawner = kubespawner
        self._spawner = spawner
        self._lost_at = self._denied_at = -math.inf

    def options_from_form(self) -> Any:
        """Return the function that reads a form of profiles."""
        return default_of(self.kubespawner, self._spawner, "options_from_form")

    def options_form(self, place: str) -> Any:
        """Return the default of ``options_form``; *place* for KubeSpawner's of a function."""
        form = default_of(self.kubespawner, self._spawner, "options_form")
        is_drawn = form == self._spawner._render_options_form_dynamically
        return place if is_drawn and not others_have(self._spawner, (DRAWING_LATE,)) else form

    def draw_profiles(self, profiles: Sequence[Mapping[str, Any]]) -> str:
        """Draw the form for these profiles."""
        drawn: str = self.kubespawner._render_options_form(profiles)
        return drawn

    def validate_user_options(self, profiles: Sequence[Mapping[str, Any]]) -> None:
        """Check the options against profiles."""
        self.kubespawner._validate_user_options(profiles)

    def apply_overrides(self, overrides: Mapping[str, Any]) -> None:
        """Set what a profile or a group sets."""
        self.kubespawner._apply_overrides(overrides)

    async def load_user_options(self) -> None:
        """Load the chosen profile; `is_of_others` looks below this for whose an error is."""
        await self.kubespawner.load_user_options()

    async def make_pod(self) -> Any:
        """Return KubeSpawner's pod; `is_of_others` looks below this, too."""
        return await self.kubespawner.get_pod_manifest()

    async def run_start(self) -> Any:
        """Run the steps of a start, in the task that KubeSpawner's ``start`` makes."""
        return await self.kubespawner._start()

    async def create_pod(self, pod: Any, request_timeout: float) -> bool:
        """Send the pod; return False if KubeSpawner has to send it again."""
        made: bool = await self._answered(
            self.kubespawner._make_create_pod_request(pod, request_timeout)
        )
        return made

    async def create_pvc(self, pvc: Any, request_timeout: float) -> Any:
        """Send the PersistentVolumeClaim."""
        return await self._answered(self.kubespawner._make_create_pvc_request(pvc, request_timeout))

    async def delete_pod(self, options: Any, grace_seconds: int) -> bool:
        """Delete the pod; return whether it is gone."""
        spawner = self._spawner
        gone: bool = await self._answered(
            self.kubespawner._make_delete_pod_request(
                spawner.pod_name, options, grace_seconds, spawner.k8s_api_request_timeout
            )
        )
        return gone

    async def _answered(self, request: Awaitable[Any]) -> Any:
        """Return a request's result; False if nothing answers, so that KubeSpawner sends it again.

        KubeSpawner does so only after a time-out. A connection is lost as easily: the API server is
        restarted, or a load balancer in front of it. In its first moments, it knows no roles.
        """
        try:
            return await request
        except (aiohttp.ClientError, OSError) as error:
            if not any(map(_is_kubespawner, _passed(error))):  # a class of others sends nothing
                raise
            self._lost_at = time.monotonic()
        except ApiException as error:
            if error.status in _NOT_NOW:  # such as an API server that is about to end
                self._lost_at = time.monotonic()
            elif not self._may_know_no_roles(error):
                raise
        return False

    def _may_know_no_roles(self, error: ApiException) -> bool:
        """Whether the API server may have just started: a request was lost, maybe another's."""
        now = time.monotonic()
        if error.status != _FORBIDDEN:
            return False
        if NO_RIGHT in str(error.body) and now - self._denied_at > _EPISODE_SECONDS:
            self._denied_at = now
        return now - max(self._lost_at, self._denied_at) < _NEW_SECONDS

    def stops_pod(self) -> bool:
        """Whether KubeSpawner deletes the pod after a failed start, or shall keep it.

        It doesn't stop a pod that it hasn't seen, or that has failed without a container, as one
        that a node has refused; a pod whose containers haven't run may fail at any moment. Nothing
        in such a pod needs time to end, and nobody has to wait for its node, which may be lost.
        """
        pod, spawner = self.known_pod(), self._spawner
        if pod is None:
            return False
        status = pod.get("status") or {}
        if status.get("phase") == "Failed" and not spawner.delete_stopped_pods:
            return True
        kinds = ("initContainerStatuses", "containerStatuses")
        return any(_has_run(it) for kind in kinds for it in status.get(kind) or ())

    def known_pod(self) -> Any:
        """Return the server's pod as KubeSpawner last saw it; None if it has seen none."""
        spawner, reflector = self._spawner, self.reflector("pods")
        key = f"{spawner.namespace}/{spawner.pod_name}"
        return reflector.pods.get(key) if reflector is not None else None

    def knows_pods(self) -> bool:
        """Whether KubeSpawner has read the pods; some starts that fail let it read all anew."""
        reflector = self.reflector("pods")
        return reflector is not None and reflector.first_load_future.done()

    def knows_no_pod(self) -> bool:
        """Whether KubeSpawner has read the pods, and none is the server's."""
        return self.knows_pods() and self.known_pod() is None

    async def start_reflector(self, kind: str, *args: Any, **kwargs: Any) -> Any:
        """Start following the pods or events of a namespace, once for all spawners."""
        return await self.kubespawner._start_reflector(kind, *args, **kwargs)

    def drop_reflector(self, kind: str, before: Any) -> None:
        """Drop a reflector that failed, so that the next start makes a new one.

        The one *before* it still runs if it was only to be replaced: other starts need it.
        """
        key, reflectors = self._spawner._get_reflector_key(kind), self._spawner.reflectors
        if works(before):
            reflectors[key] = before
        else:
            reflectors.pop(key, None)

    def reflector(self, kind: str) -> Any:
        """Return the reflector of a kind; None if there is none."""
        return self._spawner.reflectors.get(self._spawner._get_reflector_key(kind))


def namespace_of(kind: type[Any], settings: object) -> Any:
    """The namespace of a class's servers if none is configured: its own, or as in KubeSpawner.

    If only a spawner can compute its own, as from the user, it isn't known.
    """
    if isinstance(kind.namespace, str):
        return kind.namespace
    theirs = kind._all_trait_default_generators.get("namespace")
    if theirs not in (None, KubeSpawner._all_trait_default_generators.get("namespace")):
        with suppress(Exception):  # it is the administrator's, and expects a spawner
            if isinstance(found := theirs(settings), str):
                return found
    return default_namespace()


def default_namespace() -> str:
    """KubeSpawner's namespace of servers if none is configured: the hub's own, in a cluster."""
    found: str = KubeSpawner._namespace_default(None)
    return found


def as_list(given: Any) -> Any:
    """A list, in KubeSpawner's order if it is a dictionary, as the chart writes lists.

    A ``profile_list`` may be a function.
    """
    return KubeSpawner._sorted_dict_values(None, given)


def complete_profiles(spawner: Any, profiles: Any) -> Sequence[Mapping[str, Any]]:
    """Profiles with the slugs and defaults that KubeSpawner gives them."""
    complete = KubeSpawner._get_initialized_profile_list(spawner, profiles)
    return complete or ()


def makes_its_pods(spawner: Any) -> bool:
    """Whether only KubeSpawner and gpuspawner make a spawner's pods, and no class of others does.

    A class of others may treat users differently.
    """
    return not others_have(spawner, MAKING)


def has_own_progress(spawner: Any) -> bool:
    """Whether a class of others tells how far a start is."""
    return others_have(spawner, ("progress",))


def labels_of_pod(spawner: Any) -> Mapping[str, str]:
    """The labels of a server's pod; ``extra_labels`` may change that of its owner."""
    return dict(spawner._build_pod_labels(_expanded(spawner, spawner.extra_labels)))


def labels_of_claim(spawner: Any) -> Mapping[str, str]:
    """The labels of the claim that KubeSpawner makes for the home directory, as `labels_of_pod`."""
    return dict(spawner._build_common_labels(_expanded(spawner, spawner.storage_extra_labels)))


def _expanded(spawner: Any, labels: Mapping[str, str]) -> Mapping[str, str]:
    """Expand templates; without labels if one has a fault, as then KubeSpawner makes no object."""
    try:
        return dict(spawner._expand_all(labels))
    except (AttributeError, LookupError, TypeError, ValueError):  # what str.format raises
        return {}


def form_template(spawner: Any) -> object:
    """What KubeSpawner's form for the same profiles and options depends on, to compare.

    None if a class of others draws it, perhaps each time in another way.
    """
    if others_have(spawner, _DRAWING):
        return None
    return spawner.profile_form_template, tuple(spawner.additional_profile_form_template_paths)


def others_have(spawner: Any, names: Iterable[str]) -> bool:
    """Whether a class that is neither KubeSpawner's nor ours has one of these methods."""
    return not _names_of_others(type(spawner)).isdisjoint(names)  # type: ignore[arg-type]


def is_its_init(init: Any) -> bool:
    """Whether this bound ``__init__`` is KubeSpawner's, and not of a class in front of it."""
    return getattr(init, "__func__", None) is KubeSpawner.__init__


def functions_set(spawner: Any) -> list[Any]:
    """Return the hooks and other functions that the configuration gives a spawner."""
    return [it for it in spawner._trait_values.values() if callable(it)]


def methods_of_others(spawner: Any, names: Iterable[str]) -> list[Any]:
    """Return such methods of classes that are neither KubeSpawner's nor ours."""
    theirs = classes_of_others(type(spawner))
    return [vars(cls)[name] for cls in theirs for name in names if name in vars(cls)]


@lru_cache(64)
def _names_of_others(kind: type) -> frozenset[str]:
    return frozenset(name for cls in classes_of_others(kind) for name in vars(cls))


def classes_of_others(kind: type) -> list[type]:
    """Return a class and its bases that are neither KubeSpawner's nor ours."""
    return [
        cls
        for cls in kind.__mro__
        if cls not in KubeSpawner.__mro__ and cls.__module__.partition(".")[0] != _OURS
    ]


def is_of_others(error: BaseException) -> bool:
    """Whether a hook, a function or a class of an administrator's has raised *error* in a start.

    It is the last caller's that isn't a library, below KubeSpawner or a method of `Stock`. Or
    KubeSpawner awaits what a hook has returned, and not its own time limit.
    """
    passed = dropwhile(lambda it: it[0] != __name__ and not _is_kubespawner(it), _passed(error))
    steps = list(passed)
    callers = [n for n, (it, _) in enumerate(steps) if it.partition(".")[0] not in _LIBRARIES]
    if not callers:
        return False
    module, function = steps[callers[-1]]
    is_limit = any(it == "jupyterhub.utils" for it, _ in steps[callers[-1] + 1 :])
    return module.partition(".")[0] not in _STEPS or (function in _CALLING and not is_limit)


def _passed(error: BaseException) -> list[tuple[str, str]]:
    """The modules and functions that an error has passed; a configuration's have no module."""
    frames = (it for it, _ in walk_tb(error.__traceback__))
    return [(it.f_globals.get("__name__", ""), it.f_code.co_name) for it in frames]


def _is_kubespawner(step: tuple[str, str]) -> bool:
    return step[0].startswith("kubespawner.")


def connect(spawner: Any) -> bool:
    """Give KubeSpawner its client if it has none; return False if there is no configuration."""
    if spawner.api is None:
        try:
            load_config(
                host=spawner.k8s_api_host,
                ssl_ca_cert=spawner.k8s_api_ssl_ca_cert,
                verify_ssl=spawner.k8s_api_verify_ssl,
            )
        except Exception as error:
            if not is_of_configuration(error):
                raise
            return False  # the view logs the error
        spawner.api = shared_client("CoreV1Api")
    return True


def is_of_configuration(error: Exception) -> bool:
    """Whether *error* comes from reading the Kubernetes configuration.

    It may be any error of YAML, the file system or an exec plugin, so its type tells nothing.
    """
    reading = inspect.unwrap(load_config).__code__
    return any(frame.f_code is reading for frame, _ in walk_tb(error.__traceback__))


def _has_run(container: Mapping[str, Any]) -> bool:
    """Whether a container runs or has run, by its status."""
    states = [container.get(state) or {} for state in ("state", "lastState")]
    return any(it.get(way) for it in states for way in ("running", "terminated"))


_VERSION = "kubespawner_version"


def until_looked_for(spawner: Any, state: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what to store of a server: no version before KubeSpawner has looked for its home.

    Before version 7, KubeSpawner named the claims of some users in another way. It looks for such a
    claim when it ensures the home directory of somebody whose stored state says no version, and
    stores the version from then on (``load_state``, ``get_state`` and ``_start``). A start that
    ends earlier also stores it, as each refusal does. The next start would make a new, empty home
    directory.
    """
    # A later KubeSpawner may no longer look, and lack these names.
    is_of_old_version = getattr(spawner, "_state_kubespawner_version", None) == "unknown"
    is_found = getattr(spawner, "_pvc_exists", True)
    if not (is_of_old_version and spawner.storage_pvc_ensure) or is_found:
        return state
    return {name: value for name, value in state.items() if name != _VERSION}
