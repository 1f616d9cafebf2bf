"""KubeSpawner's private names: its steps of a start, its client, its profiles.

Read in ``kubespawner/spawner.py`` and ``kubespawner/clients.py`` of 7.0.0 and 7.1.0.
"""

import copy
import inspect
from collections.abc import Mapping, Sequence
from traceback import walk_tb
from typing import Any, TypeVar

from kubespawner import KubeSpawner
from kubespawner.clients import load_config, shared_client

AnySpawner = TypeVar("AnySpawner")

# The hub's whole configuration, and the profiles, which KubeSpawner copies before it changes them.
_NEVER_CHANGED = frozenset({"config", "profile_list"})


class Stock:
    """A spawner's methods as KubeSpawner has them, without gpuspawner's.

    Attributes:
        kubespawner: ``super()`` as gpuspawner's class sees it. Its public methods are used as they
            are; those with private names have names here.
    """

    def __init__(self, kubespawner: Any, spawner: Any) -> None:
        self.kubespawner = kubespawner
        self._spawner = spawner

    def options_from_form(self) -> Any:
        """Return the function that reads a form of profiles."""
        return self.kubespawner._options_from_form_default()

    def validate_user_options(self, profiles: Sequence[Mapping[str, Any]]) -> None:
        """Check the options against profiles."""
        self.kubespawner._validate_user_options(profiles)

    def apply_overrides(self, overrides: Mapping[str, Any]) -> None:
        """Set what a profile or a group sets."""
        self.kubespawner._apply_overrides(overrides)

    async def run_start(self) -> Any:
        """Run the steps of a start, in the task that KubeSpawner's ``start`` makes."""
        return await self.kubespawner._start()

    async def create_pod(self, pod: Any, request_timeout: float) -> bool:
        """Send the pod; return False if KubeSpawner has to send it again."""
        made: bool = await self.kubespawner._make_create_pod_request(pod, request_timeout)
        return made

    async def create_pvc(self, pvc: Any, request_timeout: float) -> Any:
        """Send the PersistentVolumeClaim."""
        return await self.kubespawner._make_create_pvc_request(pvc, request_timeout)

    async def delete_pod(self, options: Any, grace_seconds: int) -> bool:
        """Delete the pod; return whether it is gone."""
        spawner = self._spawner
        gone: bool = await self.kubespawner._make_delete_pod_request(
            spawner.pod_name, options, grace_seconds, spawner.k8s_api_request_timeout
        )
        return gone

    def knows_pod(self) -> bool:
        """Whether KubeSpawner has seen the pod, so that it stops it itself."""
        spawner = self._spawner
        return f"{spawner.namespace}/{spawner.pod_name}" in spawner.pod_reflector.pods

    async def start_reflector(self, kind: str, *args: Any, **kwargs: Any) -> Any:
        """Start following the pods or events of a namespace, once for all spawners."""
        return await self.kubespawner._start_reflector(kind, *args, **kwargs)

    def drop_reflector(self, kind: str) -> None:
        """Drop a reflector, so that the next start makes a new one."""
        key = self._spawner._get_reflector_key(kind)
        self._spawner.reflectors.pop(key, None)


def draw_profiles(spawner: Any, profiles: Sequence[Mapping[str, Any]]) -> str:
    """KubeSpawner's form for these profiles."""
    drawn: str = spawner._render_options_form(profiles)
    return drawn


def as_list(profiles: Any) -> Any:
    """A ``profile_list``, in KubeSpawner's order if it is a dictionary; it may be a function."""
    return KubeSpawner._sorted_dict_values(None, profiles)


def complete_profiles(spawner: Any, profiles: Any) -> Sequence[Mapping[str, Any]]:
    """Profiles with the slugs and defaults that KubeSpawner gives them."""
    complete = KubeSpawner._get_initialized_profile_list(spawner, profiles)
    return complete or ()


def copy_of(spawner: AnySpawner) -> AnySpawner:
    """A copy of *spawner* whose traits can be changed without changing those of the original."""
    copied: Any = copy.copy(spawner)
    values = copied._trait_values  # HasTraits gives each copy its own
    for name, value in values.items():
        if isinstance(value, dict | list | set) and name not in _NEVER_CHANGED:
            values[name] = copy.deepcopy(value)
    made: AnySpawner = copied
    return made


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
