"""``gpuspawner.configure(c)``: checks a hub's whole configuration before anybody logs in.

By default, the hub silently ignores a misspelt section, warns about an unknown trait only when it
creates a spawner, and answers every page with HTTP 500 if a value has the wrong type. With this
check, it refuses to start and names the mistake.
"""

import asyncio
import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from logging import ERROR, WARNING
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupyterhub.app import JupyterHub
from traitlets import Bunch, TraitError
from traitlets.config import Config, Configurable
from traitlets.config.loader import PyFileConfigLoader
from traitlets.log import get_logger

from gpuspawner import runtime
from gpuspawner.cluster import garbage
from gpuspawner.compat import class_traits, kubespawner
from gpuspawner.compat.code import sets_attribute
from gpuspawner.compat.spawner_class import SpawnerClassError
from gpuspawner.form.addresses import is_served
from gpuspawner.gates import startup_report
from gpuspawner.kube.objects import mapping
from gpuspawner.kube.quoting import did_you_mean
from gpuspawner.launch import hub_pages
from gpuspawner.offers import manifest
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.shapes import OfferError
from gpuspawner.spawner import GPUSpawner, in_front_of
from gpuspawner.traits import OF_ONE_SERVER, OFFERS
from gpuspawner.traits.settings import configured_offers, configured_policies, configured_queue
from gpuspawner.web.handlers import serve

if TYPE_CHECKING:
    from gpuspawner.profiles.override_mistakes import Slip

SAME_NAME = "{} sets {}: GPUSpawner's trait of that name is the whole hub's, and stays as it is"

# Matches a typo (GPUSpawnr, GpuSpawner), but not another spawner (DockerSpawner).
_TYPO_SIMILARITY = 0.85


class ConfigurationError(ValueError):
    """The hub's configuration contradicts itself or names something that doesn't exist."""


_configured: list[Config] = []
"""What `configure` has seen without a hub, until `load` puts GPUSpawner in front of later lines."""


def configure(c: Config) -> None:
    """Use GPUSpawner, check its configuration, and start reading the cluster with the hub.

    Call it in ``jupyterhub_config.py``, or in ``hub.extraConfig`` with Zero-to-JupyterHub. It also
    checks the lines that come after it, as soon as the hub has read the whole configuration; a
    mistake in them stops the hub too. The argument is what ``get_config()`` returns.

    Raises:
        ConfigurationError: A section or trait is misspelt, a value has the wrong type, or two
            traits exclude each other, or GPUSpawner can't stand in front of the spawner class.
        OfferError: The offers aren't usable.
    """
    spawner = spawner_class(c)
    c.JupyterHub.spawner_class = spawner
    settings = check(c, spawner)
    if settings.gpu_use is not False:
        from gpuspawner.use.gpu_use_config import SCOPES  # only hubs that keep a record load it

        # Beside the administrator's, before the hub reads the roles.
        c.JupyterHub.custom_scopes.update(SCOPES)
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:  # a command such as `jupyterhub token` reads the file and starts no hub
        _configured.append(c)
        return
    # The hub reads its configuration, with other files and the command line, without yielding to
    # the event loop.
    if JupyterHub.initialized():
        JupyterHub.instance().observe(_put_in_front, "spawner_class")
    loop.call_soon(_begin, c, spawner)


def _put_in_front(change: Bunch) -> None:
    """Put GPUSpawner in front of a class that later lines set; `_begin` reports its errors."""
    with suppress(SpawnerClassError):
        change.owner.spawner_class = in_front_of(change.new)


def _begin(c: Config, spawner: type[GPUSpawner]) -> None:
    hub = JupyterHub.instance() if JupyterHub.initialized() else None
    try:
        if hub is not None:
            c, spawner = hub.config, _spawner_class(hub.spawner_class)
        settings = check(c, spawner)
        if hub is not None and is_served(hub):  # it is configured twice, as by two files
            return
        running = runtime.configured(settings)  # before anything reads the traits' defaults
        for place, name in shared_names(settings, spawner):
            get_logger().warning("%s", SAME_NAME.format(place, name))
        if hub is not None:
            serve(hub)
            hub_pages.announce(hub, running, settings.language)
            _keep_record(hub, running, settings)
            if running.line is not None:
                from gpuspawner.web import line  # only hubs with a line load it

                line.serve(hub)
                running.run(running.line.resume(running.view))
        tornado_settings = c.JupyterHub.get("tornado_settings")
        startup_report.begin(running, settings, _schedulers(settings), tornado_settings)
        if settings.gc_freeze:
            garbage.freeze()
        # Last, because the hub needs nothing of it: everybody else's servers start all the same.
        for slip in all_slips(settings):
            get_logger().log(ERROR if slip.is_fatal else WARNING, "%s", slip.text)
    except (ConfigurationError, OfferError) as error:
        get_logger().critical("%s", error)
        raise SystemExit(1) from None


def _keep_record(hub: Any, running: runtime.Runtime, settings: Any) -> None:
    """Keep the record of the use of GPUs; only hubs that keep one load it."""
    if settings.gpu_use is False:
        return
    from gpuspawner.use import hub_use
    from gpuspawner.use.gpu_use_config import read_use

    if (rules := read_use(settings.gpu_use)) is not None:
        # Which taints a profile tolerates is only known for a user, so with profiles none counts.
        every = [{"operator": "Exists"}]
        tolerations = every if settings.profile_list else kubespawner.as_list(settings.tolerations)
        hub_use.begin(hub, running, rules, tolerations)


_STATUS = re.compile(r"[a-z0-9-]+/[a-z0-9.-]+")


def check(c: Config, spawner: type[GPUSpawner] = GPUSpawner) -> Any:
    """Check what concerns *spawner*, and return an object with its traits as attributes.

    Raises:
        ConfigurationError, OfferError: As `configure`.
    """
    _check_sections(c, spawner)
    _check_names(c, spawner)
    settings = _settings(c, spawner)
    offers = configured_offers(settings)
    policies = configured_policies(settings, offers)
    configured_queue(settings, offers, policies)
    _check_use(settings, policies)
    chosen = [name for name in OFFERS if getattr(settings, name)]
    if chosen and settings.profile_list:
        raise ConfigurationError(
            f"GPUSpawner.{chosen[0]} and KubeSpawner.profile_list are both set; "
            "users would have to choose twice, so keep only one of them"
        )
    _check_profiles(settings)
    _check_overrides(settings)
    _check_nodes(settings, offers)
    if not _STATUS.fullmatch(settings.autoscaler_status):
        raise ConfigurationError(
            f"GPUSpawner.autoscaler_status is {settings.autoscaler_status!r}, but must be the "
            "namespace and the name of a ConfigMap, as in kube-system/cluster-autoscaler-status"
        )
    return settings


def load(path: Path) -> Config:
    """Execute a hub's configuration file outside of a hub.

    Raises:
        ConfigurationError: The file can't be read, or raises an error.
    """
    _configured.clear()
    try:
        config = PyFileConfigLoader(path.name, str(path.parent)).load_config()
    except (ConfigurationError, OfferError) as error:
        raise ConfigurationError(str(error)) from error
    except (Exception, SystemExit) as error:  # it is the administrator's program
        raise ConfigurationError(f"{type(error).__name__}: {error}") from error
    if any(it is config for it in _configured):
        config.JupyterHub.spawner_class = spawner_class(config)
    return config


def offered(c: Config) -> tuple[Offers, object | None]:
    """As `check` of a whole configuration; return its offers, and the rules of its line, if any.

    Raises:
        ConfigurationError: Also if it offers profiles, whose options are KubeSpawner's.
    """
    settings = check(c, spawner_class(c))
    if settings.profile_list:
        raise ConfigurationError(
            "KubeSpawner.profile_list is set: this hub offers profiles, not accelerators"
        )
    offers = configured_offers(settings)
    return offers, configured_queue(settings, offers, configured_policies(settings, offers))


def spawner_class(c: Config) -> type[GPUSpawner]:
    """Return the class that `configure` sets.

    Raises:
        ConfigurationError: `JupyterHub.spawner_class` is a class that can't have gates.
    """
    return _spawner_class(c.JupyterHub.get("spawner_class", GPUSpawner))


def _spawner_class(given: object) -> type[GPUSpawner]:
    try:
        return in_front_of(given)
    except SpawnerClassError as error:
        raise ConfigurationError(str(error)) from error


def _check_sections(c: Config, spawner: type[GPUSpawner]) -> None:
    ours = [name for name in spawner.section_names() if name.endswith("Spawner")]
    by_lower_case = {name.lower(): name for name in ours}
    known = {cls.__name__ for cls in _subclasses(Configurable)}
    # Not the section of a class that later lines import, such as LabKubeSpawner or MySpawner; so a
    # misspelt name with something before ours isn't found.
    of_others = tuple(it for it in ours if it != "Spawner")
    for section in c:
        if section in known or section.endswith(of_others):
            continue
        near = difflib.get_close_matches(
            section.lower(), by_lower_case, n=1, cutoff=_TYPO_SIMILARITY
        )
        if near and not section.endswith(meant := by_lower_case[near[0]]):
            raise ConfigurationError(f"There is no section {section}; did you mean c.{meant}?")


def _check_names(c: Config, spawner: type[GPUSpawner]) -> None:
    """Refuse misspelt traits of our sections; the hub warns about those of other classes."""
    traits = class_traits.configurable(spawner)
    ours = [cls.__name__ for cls in spawner.__mro__ if issubclass(cls, GPUSpawner)]
    others = {cls.__name__ for cls in spawner.__mro__ if not issubclass(cls, GPUSpawner)}
    for section in [name for name in ours if name not in others and name in c]:
        for name in c[section]:
            if name not in traits:
                hint = did_you_mean(name, traits)
                raise ConfigurationError(f"{section}.{name}: there is no such trait{hint}")


def _settings(c: Config, spawner: type[GPUSpawner]) -> Any:
    """Read the traits without creating a spawner, which would need a user and a cluster."""
    try:
        return class_traits.settings_of(spawner, c, partial(kubespawner.namespace_of, spawner))
    except TraitError as error:
        raise ConfigurationError(str(error)) from error


def _check_use(settings: Any, policies: Any) -> None:
    """Refuse policies that give back idle servers if nobody can say which are idle.

    What a function returns is only logged, by `HubPolicies`.
    """
    if settings.gpu_use is not False:
        from gpuspawner.use.gpu_use_config import read_use  # only hubs that keep a record load it

        read_use(settings.gpu_use)
    if policies is not None and not callable(policies):
        for mistake in policies.unmeasured(settings.gpu_use):
            raise ConfigurationError(mistake)


def _check_overrides(settings: Any) -> None:
    """Refuse offers that a group, a profile or an option sets: offers hold for the whole hub."""
    for place, overridden in _overrides(settings):
        offers = sorted(set(OFFERS).intersection(overridden))
        if offers:
            raise ConfigurationError(
                f"{place} sets GPUSpawner.{offers[0]}; "
                "offers are the same for everybody and can only be set for the whole hub"
            )


def shared_names(settings: Any, spawner: type[GPUSpawner]) -> Iterator[tuple[str, str]]:
    """Yield what sets a trait of ours on a spawner although it holds for the whole hub, and which.

    It may be an attribute of the administrator's own, which has the same name. Code that sets such
    an attribute of another object isn't told apart.
    """
    ours = sorted(set(GPUSpawner.class_own_traits(config=True)) - set(OF_ONE_SERVER))
    for place, overridden in _overrides(settings):
        yield from ((place, name) for name in ours if name in overridden)
    code = {cls.__qualname__: cls for cls in spawner.__mro__ if cls not in GPUSpawner.__mro__}
    functions = {it: _value(settings, it) for it in settings.trait_names(config=True)}
    for place, owner in {**code, **functions}.items():
        yield from ((place, name) for name in ours if sets_attribute(owner, name))


def _value(settings: Any, trait: str) -> Any:
    """Return what is configured; None for a trait whose default only its class can compute."""
    with suppress(TraitError):
        return getattr(settings, trait)
    return None


def all_slips(settings: Any) -> Iterator["Slip"]:
    """Yield the slips in what sets traits; those of a function that lists profiles need a user."""
    if not (settings.environment or settings.group_overrides or settings.profile_list):
        return
    from gpuspawner.profiles import override_mistakes  # only hubs that set one of these load it

    environment = {"environment": settings.environment}
    for place, given in (("KubeSpawner", environment), *_group_overrides(settings)):
        yield from override_mistakes.of_override(place, given, settings)
    yield from override_mistakes.of_profiles(settings.profile_list, settings)


def _check_nodes(settings: Any, offers: Offers) -> None:
    """Refuse accelerators whose labels contradict those of every server, or that nobody avoids."""
    every = {"spec": {"containers": [{}], "nodeSelector": settings.node_selector}}
    try:
        for it in offers.accelerators.values():
            manifest.apply(every, manifest.without_volumes(Grant(it, it.counts[0])))
        if settings.keep_cpu_servers_off_accelerators:
            manifest.off(offers.accelerators.values())
    except manifest.ManifestError as error:
        raise ConfigurationError(str(error)) from error


def _group_overrides(settings: Any) -> Iterator[tuple[str, Mapping[Any, Any]]]:
    for name, group in mapping(settings.group_overrides).items():
        place = f"Spawner.group_overrides[{name!r}]"
        yield place, mapping(mapping(group).get("spawner_override"))


def _overrides(settings: Any) -> Iterator[tuple[str, Iterable[str]]]:
    yield from _group_overrides(settings)
    if settings.profile_list:
        from gpuspawner.profiles.override_mistakes import OVERRIDE, parts

        for place, part in parts(settings.profile_list):
            yield place, mapping(part.get(OVERRIDE))
    applied = mapping(settings.apply_user_options).values()
    yield "Spawner.apply_user_options", [name for name in applied if isinstance(name, str)]


def values(settings: Any, trait: str) -> Iterator[object]:
    """Yield what a trait may be for servers: the hub's own value, and those of overrides."""
    yield getattr(settings, trait)
    for _, overridden in _overrides(settings):
        if trait in mapping(overridden):
            yield mapping(overridden)[trait]


def _schedulers(settings: Any) -> Iterator[str]:
    """Yield the schedulers that servers may name, the hub's own first."""
    for name in values(settings, "scheduler_name"):
        if isinstance(name, str | None):
            yield name or ""


def _check_profiles(settings: Any) -> None:
    """Refuse profiles that KubeSpawner can't show: every user would get HTTP 500."""
    listed = settings.profile_list
    if error := _profile_error(listed):
        alone = enumerate(listed if isinstance(listed, list) else ())
        places = (f"; look at profile_list[{n}]" for n, it in alone if _profile_error([it]))
        text = f"KubeSpawner.profile_list can't be read: {error!r}{next(places, '')}"
        raise ConfigurationError(text) from error


def _profile_error(listed: object) -> Exception | None:
    if not listed:
        return None
    from gpuspawner.profiles import pod_of_choice  # only hubs with profiles load it

    try:
        pod_of_choice.check(listed)
    except (AttributeError, KeyError, TypeError) as error:
        return error
    return None


def _subclasses(cls: type[object]) -> Iterator[type[object]]:
    for each in cls.__subclasses__():
        yield each
        yield from _subclasses(each)
