"""What the hub's own code may still change of a pod after a gate has judged it."""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import MethodType
from typing import Any

from gpuspawner.compat import jupyterhub, kubespawner
from gpuspawner.compat.code import mentions, stays_within, uses_only
from gpuspawner.compat.overrides import overridden
from gpuspawner.preflight.learned_hooks import Later, Placements
from gpuspawner.start.host import Host
from gpuspawner.start.refusal import misconfigured
from gpuspawner.start.source import FormReader
from gpuspawner.traits import OFFERS

# fmt: off
_OF_ALL_ALIKE = frozenset({
    *kubespawner.STARTING, "super", "get_pod_manifest", "list", "dict", "len", "append",
    "extend", "insert", "get", "items", "setdefault", "update", "log", "debug", "info",
    "warning", "extra_pod_config", "node_selector", "node_affinity_preferred",
    "node_affinity_required", "tolerations", "scheduler_name", "priority_class_name",
    "runtime_class_name", "spec", "key", "operator", "value", "values", "effect", "affinity",
    "node_affinity", "node_selector_terms", "match_expressions", "match_fields", "preference",
    "weight", "preferred_during_scheduling_ignored_during_execution",
    "required_during_scheduling_ignored_during_execution",
})
# fmt: on
"""Names by which code sets where pods may go, and none by which it could ask whose they are."""
_CLIENTS = frozenset({"kubernetes", "kubernetes_asyncio"})
_STDLIB = sys.stdlib_module_names - {"builtins", "importlib", "inspect", "operator"}
_WITHOUT_EVENTS = _STDLIB | _CLIENTS | {"gpuspawner", "jupyterhub", "kubespawner", "traitlets"}
"""Packages whose functions read no events of a spawner that they are given."""
_PLACES = re.compile(
    "toleration|affinity|selector|schedul|priority|runtime_class|extra_|profile|spec|node|pod|limit|"
    "guarantee|resource|container|image|volume|storage|namespace|options|override|config|trait|hook|"
    "accelerator|gpu|cpu|mem|attr|dict|vars|globals|locals|exec|eval|compile|^_(?!_class__|start$)"
)
"""What the names contain by which code can change the placement or the requests of a pod."""
_PROFILES = "profile_list"
_PRIORITY = ("priority_class_name", "priorityClassName")


def later(
    spawner: Host, placements: Placements, server: str, unused: tuple[str, ...] = ()
) -> Later:
    """Return what becomes of the pods of an owner's server after this moment.

    *server* is its name, which may be another one than the spawner's. *unused* are methods that a
    class of the administrator's may have, and that have had no part in the pod that is judged.
    """
    before = (
        *jupyterhub.code_before_a_start(spawner),
        *kubespawner.methods_of_others(spawner, kubespawner.PREPARING),
    )
    after = (
        spawner.pre_spawn_hook,
        spawner.modify_pod_hook,
        *kubespawner.methods_of_others(spawner, (*kubespawner.STARTING, *unused)),
    )
    early, late = _that_matters(spawner, *before), _that_matters(spawner, *after)
    is_starting = jupyterhub.is_starting(spawner)
    is_alike = not early and all(uses_only(it, _OF_ALL_ALIKE.__contains__, _CLIENTS) for it in late)
    return Later(
        placements,
        has_own_code=bool(late) or bool(early and not is_starting),
        has_any_code=any(it is not None for it in (*(() if is_starting else before), *after)),
        sets_priority=_mention(spawner, (*early, *late), _PRIORITY),
        server="" if is_alike else f"{spawner.user.name}/{server}",
        is_unknowable=(
            spawner.apply_user_options not in (apply_nothing, {})
            and not (is_starting and is_alike)  # or code may ask what it has kept of them
        )
        or any(mentions(it, "user_options") for it in late),
    )


def _that_matters(spawner: Host, *code: object) -> list[object]:
    """Return the code that may change a placement.

    A function of `group_overrides` needs no names for that: the hub sets what it returns.
    """
    overrides = getattr(spawner, "group_overrides", None)

    def is_harmless(name: str) -> bool:
        is_theirs = kubespawner.others_have(spawner, (name,)) and name not in kubespawner.STARTING
        return not is_theirs and _PLACES.search(name) is None

    return [
        it
        for it in code
        if it is not None and (it is overrides or not uses_only(it, is_harmless, _STDLIB))
    ]


def as_started(spawner: Host) -> Host:
    """Return a spawner with what the hub overrides for groups when it starts a server.

    A copy, if that changes anything: pages leave the spawner as it is.
    """
    overrides = jupyterhub.group_overrides(spawner)
    if not overrides or jupyterhub.is_starting(spawner):
        return spawner
    copied = spawner.gpuspawner_copy()
    for override in overrides:
        rest = {name: value for name, value in override.items() if name != _PROFILES}
        copied.gpuspawner_stock.apply_overrides(rest)
    if any(_PROFILES in it for it in overrides):
        # KubeSpawner would change a dictionary in place, which the copy shares with its spawner.
        copied.profile_list = profiles_of(spawner)
    return copied


def profiles_of(spawner: Host) -> Any:
    """Return the ``profile_list`` of a spawner, as the hub overrides it for groups in a start."""
    listed = spawner.profile_list
    if jupyterhub.is_starting(spawner):
        return listed
    for override in jupyterhub.group_overrides(spawner, _PROFILES):
        listed = overridden(listed, override[_PROFILES])
    return listed


def apply_overrides(stock: kubespawner.Stock, overrides: Mapping[str, Any]) -> None:
    """Apply the overrides of a profile or group, except offers: these hold for the whole hub.

    Raises:
        Refusal: The overrides set an offer.
    """
    offers = sorted(set(OFFERS).intersection(overrides))
    if offers:
        raise misconfigured(f"GPUSpawner.{offers[0]} can only be set for the whole hub")
    stock.apply_overrides(overrides)


def reads_options(spawner: Host) -> bool:
    """Whether an administrator's class, hooks, functions or settings read a server's options."""
    return (
        spawner.apply_user_options is not apply_nothing
        or not isinstance(spawner.options_from_form, FormReader)
        or _mention(spawner, [*_functions(spawner)], ("user_options",))
    )


def reads_events(spawner: Host) -> bool:
    """Whether an administrator's class, hooks or functions may read KubeSpawner's events.

    A function may pass its spawner on to another module, which nobody looks into.
    """
    functions = [*_functions(spawner)]
    return _mention(spawner, functions, kubespawner.OF_EVENTS) or not all(
        stays_within(it, _WITHOUT_EVENTS) for it in functions if callable(it)
    )


def _mention(spawner: Host, functions: Sequence[object], names: Iterable[str]) -> bool:
    """Whether one of the names is in these functions, or in a class of the spawner or of theirs.

    A hook may be an object or one of its methods, and then call the others.
    """
    inner = (it.func if isinstance(it, partial) else it for it in functions)
    owners = (it.__self__ if isinstance(it, MethodType) else it for it in inner)
    classes = {
        it for owner in (spawner, *owners) for it in kubespawner.classes_of_others(type(owner))
    }
    return any(mentions(it, name) for it in (*functions, *classes) for name in names)


def _functions(spawner: Host) -> Iterator[object]:
    yield from kubespawner.functions_set(spawner)
    yield from spawner.environment.values()
    yield getattr(spawner.authenticator, "pre_spawn_start", None)


def apply_nothing(spawner: object, user_options: object) -> None:
    """The default hook ``apply_user_options``, which does nothing.

    The gates already read the options, but without a hook the hub warns at every start that nothing
    does.
    """
