"""Traits as a class of an administrator's leaves them, their values, and copies of spawners.

Such a class may name and hide traits as it likes.

Read in ``traitlets/traitlets.py`` of 5.16.
"""

import copy
import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeVar

from traitlets import Any as AnyTrait
from traitlets import HasTraits, TraitType, default
from traitlets.config import Config, Configurable, LoggingConfigurable


def default_of(kubespawner: Any, spawner: Any, trait: str) -> Any:
    """Return a trait's default without gpuspawner's: KubeSpawner's, or that of a class of others.

    Such a class may name the function as it likes, as DockerSpawner does, and then calls that of
    KubeSpawner by its name. Or it has an attribute in place of the trait. *kubespawner* is as in
    `gpuspawner.compat.kubespawner.Stock`.
    """
    if (generator := kubespawner._all_trait_default_generators.get(trait)) is None:
        return getattr(spawner, trait)
    name = f"_{trait}_default"
    if (method := getattr(kubespawner, name, None)) is not None:
        vars(spawner)[name] = method
    try:
        return generator(spawner)
    finally:
        vars(spawner).pop(name, None)


def configurable(kind: type[HasTraits]) -> dict[str, TraitType[Any, Any]]:
    """Return copies of the traits that a configuration can set, also of those that a class hides.

    A class that gives a trait's name a plain value or a method has no such trait any more, and that
    is its value, of whatever type. A property's value is only known of a spawner, so the trait
    stays.
    """
    hidden = {name: _standing_for(it, _given(kind, name)) for name, it in _hidden(kind).items()}
    traits = {**hidden, **kind.class_traits(config=True)}
    return {name: copy.copy(it) for name, it in traits.items()}


def settings_of(kind: type[Configurable], c: Config, namespace: Callable[[Any], str]) -> Any:
    """Return an object with the values of a class's traits, which needs no user and no cluster.

    *namespace* computes the namespace of its servers from this object if none is configured. Names
    of whatever else a spawner has are in ``attributes``.

    Raises:
        TraitError: A value has the wrong type.
    """
    sections = kind.section_names()
    holder: Any = type(
        kind.__name__,
        (LoggingConfigurable,),
        {
            **configurable(kind),
            "attributes": frozenset(dir(kind)),
            "section_names": classmethod(lambda _: sections),
            "_namespace_default": default("namespace")(namespace),
        },
    )
    # Of a value that lines add to, traitlets keeps what it has made for the first reader. But later
    # lines may add more, and only a spawner has the defaults that its class computes.
    copied = copy.deepcopy(Config({name: c[name] for name in sections if name in c}))
    return holder(config=Config({**c, **copied}))


def _plain_values(spawner: Any) -> dict[str, Any]:
    """Return the values of traits that a spawner's class hides by a plain value."""
    return {name: getattr(spawner, name) for name in _plain(type(spawner))}  # type: ignore[arg-type]


@lru_cache(64)
def _plain(kind: type[HasTraits]) -> tuple[str, ...]:
    given = {name: _given(kind, name) for name in _hidden(kind)}
    return tuple(name for name, it in given.items() if not (callable(it) or _is_bound(it)))


def _hidden(kind: type[HasTraits]) -> dict[str, TraitType[Any, Any]]:
    """Return the configurable traits of a class's bases that it hasn't itself, or not as such."""
    known = kind.class_traits(config=True)
    return {
        name: it
        for cls in reversed(kind.__mro__)
        for name, it in vars(cls).items()
        if isinstance(it, TraitType) and it.metadata.get("config") and name not in known
    }


def _given(kind: type[HasTraits], name: str) -> object:
    return inspect.getattr_static(kind, name)


def _standing_for(hidden: TraitType[Any, Any], given: object) -> TraitType[Any, Any]:
    if isinstance(given, TraitType):  # a declaration that no configuration can set
        return given
    return AnyTrait(given) if callable(given) or not _is_bound(given) else hidden


def _is_bound(given: object) -> bool:
    """Whether an attribute has its value only on an object, as a property."""
    return hasattr(given, "__get__")


AnySpawner = TypeVar("AnySpawner")

# The hub's whole configuration, and the profiles, which KubeSpawner copies before it changes them.
_NEVER_CHANGED = frozenset({"config", "profile_list"})


def copy_of(spawner: AnySpawner) -> AnySpawner:
    """A copy of *spawner* whose traits can be changed without changing those of the original."""
    copied: Any = copy.copy(spawner)
    copied._trait_values = _own(copied._trait_values)
    vars(copied).update(_own(_plain_values(copied)))
    made: AnySpawner = copied
    return made


def renewing(copied: AnySpawner) -> Callable[[], AnySpawner]:
    """Return a function that makes a copy as it is now again; much cheaper than another copy."""
    spawner: Any = copied
    attributes, values = dict(vars(spawner)), _own(spawner._trait_values)
    plain = _own(_plain_values(spawner))

    def renew() -> AnySpawner:
        vars(spawner).clear()
        vars(spawner).update(attributes, _trait_values=_own(values), **_own(plain))
        return copied

    return renew


def _own(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a spawner's traits that shares no value that is ever changed."""
    return {
        name: _copied(value)
        if isinstance(value, dict | list | set) and name not in _NEVER_CHANGED
        else value
        for name, value in values.items()
    }


def _copied(value: Any) -> Any:
    try:
        return copy.deepcopy(value)
    except Exception:  # noqa: BLE001, an administrator's object that nothing can copy is shared
        return value
