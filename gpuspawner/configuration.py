"""``gpuspawner.configure(c)``: checks a hub's whole configuration before anybody logs in.

By default, the hub silently ignores a misspelt section, warns about an unknown trait only when it
creates a spawner, and answers every page with HTTP 500 if a value has the wrong type. With this
check, it refuses to start and names the mistake.
"""

import asyncio
import copy
import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jupyterhub.app import JupyterHub
from kubespawner import KubeSpawner
from traitlets import TraitError
from traitlets.config import Config, Configurable, LoggingConfigurable
from traitlets.config.loader import LazyConfigValue
from traitlets.log import get_logger
from traitlets.utils.importstring import import_item

from gpuspawner import manifest, runtime
from gpuspawner.compat.required_names import IncompatibleError
from gpuspawner.manifest import ManifestError
from gpuspawner.offers import OfferError, Offers
from gpuspawner.quoting import did_you_mean
from gpuspawner.spawn.profiles import trial
from gpuspawner.spawner import GPUSpawner
from gpuspawner.traits import OFFERS
from gpuspawner.web.handlers import serve

# Matches a typo (GPUSpawnr, GpuSpawner), but not another spawner (DockerSpawner).
_TYPO_SIMILARITY = 0.85


class ConfigurationError(ValueError):
    """The hub's configuration contradicts itself or names something that doesn't exist."""


def configure(c: Config) -> None:
    """Use GPUSpawner, check its configuration, and start reading the cluster with the hub.

    Call it in ``jupyterhub_config.py``, or in ``hub.extraConfig`` with Zero-to-JupyterHub. It also
    checks the lines that come after it, as soon as the hub has read the whole configuration; a
    mistake in them stops the hub too. The argument is what ``get_config()`` returns.

    Raises:
        ConfigurationError: A section or trait is misspelt, a value has the wrong type, or two
            traits exclude each other.
        OfferError: The offers aren't usable.
    """
    spawner = _spawner_class(c)
    c.JupyterHub.spawner_class = spawner
    check(c, spawner)
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:  # a command such as `jupyterhub token` reads the file and starts no hub
        return
    # The hub reads its configuration, with other files and the command line, without yielding to
    # the event loop.
    loop.call_soon(_begin, c, spawner)


def _begin(c: Config, spawner: type[GPUSpawner]) -> None:
    if JupyterHub.initialized():
        c, spawner = JupyterHub.instance().config, JupyterHub.instance().spawner_class
    try:
        _check_used(spawner)
        runtime.current(check(c, spawner))
        if JupyterHub.initialized():
            serve(JupyterHub.instance())
    except (ConfigurationError, IncompatibleError, OfferError) as error:
        get_logger().critical("%s", error)
        raise SystemExit(1) from None


def _check_used(used: type[object]) -> None:
    if not issubclass(used, GPUSpawner):
        raise ConfigurationError(
            f"JupyterHub.spawner_class was set to {used.__name__} after gpuspawner.configure(c); "
            "remove that line, or derive the class from gpuspawner.GPUSpawner"
        )


def check(c: Config, spawner: type[GPUSpawner] = GPUSpawner) -> Any:
    """Check what concerns *spawner*, and return an object with its traits as attributes.

    Raises:
        ConfigurationError, OfferError: As `configure`.
    """
    _check_sections(c, spawner)
    _check_names(c, spawner)
    settings = _settings(c, spawner)
    offers = runtime.configured_offers(settings)
    chosen = [name for name in OFFERS if getattr(settings, name)]
    if chosen and settings.profile_list:
        raise ConfigurationError(
            f"GPUSpawner.{chosen[0]} and KubeSpawner.profile_list are both set; "
            "users would have to choose twice, so keep only one of them"
        )
    _check_overrides(settings)
    _check_profiles(settings)
    _check_nodes_to_avoid(settings, offers)
    return settings


def offered(c: Config) -> Offers:
    """Check a whole configuration, and return its offers; see `check`."""
    return runtime.configured_offers(check(c, _spawner_class(c)))


def _spawner_class(c: Config) -> type[GPUSpawner]:
    given = c.JupyterHub.get("spawner_class", GPUSpawner)
    if isinstance(given, LazyConfigValue) or given in {KubeSpawner, "gpuspawner", "kubespawner"}:
        return GPUSpawner
    try:
        found = import_item(given) if isinstance(given, str) else given
    except ImportError:
        found = given
    if found is KubeSpawner:  # as Zero-to-JupyterHub sets it
        return GPUSpawner
    if isinstance(found, type) and issubclass(found, GPUSpawner):
        return found
    raise ConfigurationError(
        f"JupyterHub.spawner_class is {given!r}, which isn't a GPUSpawner; "
        "remove that line, or derive the class from gpuspawner.GPUSpawner"
    )


def _check_sections(c: Config, spawner: type[GPUSpawner]) -> None:
    ours = [name for name in spawner.section_names() if name.endswith("Spawner")]
    by_lower_case = {name.lower(): name for name in ours}
    known = {cls.__name__ for cls in _subclasses(Configurable)}
    for section in c:
        if section in known:
            continue
        near = difflib.get_close_matches(
            section.lower(), by_lower_case, n=1, cutoff=_TYPO_SIMILARITY
        )
        if near:
            meant = by_lower_case[near[0]]
            raise ConfigurationError(f"There is no section {section}; did you mean c.{meant}?")


def _check_names(c: Config, spawner: type[GPUSpawner]) -> None:
    """Refuse misspelt traits of our sections; the hub warns about those of its own."""
    traits = spawner.class_trait_names(config=True)
    stock = KubeSpawner.section_names()
    for section in [name for name in spawner.section_names() if name not in stock and name in c]:
        for name in c[section]:
            if name not in traits:
                hint = did_you_mean(name, traits)
                raise ConfigurationError(f"{section}.{name}: there is no such trait{hint}")


def _settings(c: Config, spawner: type[GPUSpawner]) -> Any:
    """Read the traits without creating a spawner, which would need a user and a cluster."""
    traits = {name: copy.copy(trait) for name, trait in spawner.class_traits(config=True).items()}
    sections = classmethod(lambda _: spawner.section_names())
    holder = type(spawner.__name__, (LoggingConfigurable,), {**traits, "section_names": sections})
    try:
        return holder(config=c)
    except TraitError as error:
        raise ConfigurationError(str(error)) from error


def _check_overrides(settings: Any) -> None:
    """Refuse offers that a group, a profile or an option sets: offers hold for the whole hub."""
    for place, overridden in _overrides(settings):
        offers = sorted(set(OFFERS).intersection(overridden))
        if offers:
            raise ConfigurationError(
                f"{place} sets GPUSpawner.{offers[0]}; "
                "offers are the same for everybody and can only be set for the whole hub"
            )


def _check_nodes_to_avoid(settings: Any, offers: Offers) -> None:
    if settings.keep_cpu_servers_off_accelerators:
        try:
            manifest.off(offers.accelerators.values())
        except ManifestError as error:
            raise ConfigurationError(str(error)) from error


def _overrides(settings: Any) -> Iterator[tuple[str, Iterable[str]]]:
    groups = settings.group_overrides
    for name, group in _mapping(groups).items():
        yield (
            f"Spawner.group_overrides[{name!r}]",
            _mapping(_mapping(group).get("spawner_override")),
        )
    listed = settings.profile_list
    if isinstance(listed, Mapping):  # KubeSpawner 7.1
        listed = list(listed.values())
    for number, profile in enumerate(listed if isinstance(listed, list) else ()):
        place = f"KubeSpawner.profile_list[{number}]"
        yield place, _mapping(_mapping(profile).get("kubespawner_override"))
        for option in _mapping(_mapping(profile).get("profile_options")).values():
            for choice in _mapping(_mapping(option).get("choices")).values():
                yield place, _mapping(_mapping(choice).get("kubespawner_override"))
    applied = _mapping(settings.apply_user_options).values()
    yield "Spawner.apply_user_options", [name for name in applied if isinstance(name, str)]


def _check_profiles(settings: Any) -> None:
    """Refuse profiles that KubeSpawner can't show: every user would get HTTP 500."""
    try:
        trial.check(settings.profile_list)
    except (AttributeError, KeyError, TypeError, re.error) as error:
        raise ConfigurationError(f"KubeSpawner.profile_list can't be read: {error!r}") from error


def _mapping(value: object) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def _subclasses(cls: type[object]) -> Iterator[type[object]]:
    for each in cls.__subclasses__():
        yield each
        yield from _subclasses(each)
