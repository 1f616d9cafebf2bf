"""Reads the parts of an offer that are Kubernetes objects, as strictly as its API server would.

The rules are those of k8s.io/apimachinery `pkg/util/validation` and k8s.io/kubernetes
`pkg/apis/core/validation` (v1.36): better told at the hub's start than at each person's spawn.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

from gpuspawner.offers.frozen import Frozen, freeze
from gpuspawner.offers.reading import At, Fields
from gpuspawner.quoting import quote

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_VARIABLE = re.compile(r"[-._A-Za-z][-._A-Za-z0-9]*")
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")

_QUOTA = "requests."
"""How a ResourceQuota names the requests of a resource."""

_NATIVE = "kubernetes.io/"
"""Of this domain or one below are the resources of Kubernetes' own."""

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TOLERATION = ("key", "operator", "value", "effect", "tolerationSeconds")
_TEXTS_OF_A_MOUNT = ("subPath", "subPathExpr", "mountPropagation", "recursiveReadOnly")
_MOUNT = ("name", "mountPath", "readOnly", *_TEXTS_OF_A_MOUNT)


def resource_name(at: At) -> str:
    """The name of a device plugin's resource, such as `nvidia.com/gpu`.

    The rule is `validateContainerResourceName`: an extended resource
    (`IsExtendedResourceName` of `pkg/apis/core/helper`: none that a quota would take for another's
    request, and itself short enough to be named in a quota), or one in Kubernetes' own domain, as
    old device plugins have it.
    """
    name = at.text()
    in_a_quota = "" if _NATIVE in name else _QUOTA
    if "/" not in name or name.startswith(_QUOTA) or not _is_qualified(in_a_quota + name):
        raise at.error(
            f"{quote(name)} is not the name of an extended resource, such as nvidia.com/gpu"
        )
    return name


def object_name(at: At) -> str:
    """The name of a cluster's object, such as a RuntimeClass."""
    name = at.text()
    if len(name) > 253 or not _SUBDOMAIN.fullmatch(name):
        raise at.error(
            f"{quote(name)} is not a name in Kubernetes; "
            "use small letters, digits, '-' and '.', a letter or digit first and last"
        )
    return name


def environment(at: At) -> Mapping[str, str]:
    """Environment variables by name."""
    for name, place in at.entries():
        if not _VARIABLE.fullmatch(name):
            raise place.error("is not a name of an environment variable")
        if not isinstance(place.value, str):
            raise place.error(f"{quote(place.value)} is not text; write it in quotes")
    return MappingProxyType({name: str(place.value) for name, place in at.entries()})


def node_selector(at: At) -> Mapping[str, str]:
    """Labels and the values that a node must have."""
    labels = {key: _label(key, place) for key, place in at.entries()}
    if not labels:
        raise at.error("is empty, so it would select every node; name at least one label")
    return MappingProxyType(labels)


def node_affinity(at: At) -> tuple[Frozen, ...]:
    """Node selector terms; a node must match one of them."""
    terms = tuple(_term(place) for place in at.items())
    if not terms:
        raise at.error("is empty; write at least one node selector term")
    return terms


def tolerations(at: At) -> tuple[Frozen, ...]:
    """Tolerations of taints."""
    return tuple(_toleration(place) for place in at.items())


def volumes(at: At) -> tuple[Frozen, ...]:
    """Volumes: a name and one source each."""
    seen: set[str] = set()
    return tuple(_volume(place, seen) for place in at.items())


def volume_mounts(at: At) -> tuple[Frozen, ...]:
    """Mounts of volumes in the server's container."""
    seen: set[str] = set()
    return tuple(_volume_mount(place, seen) for place in at.items())


def _is_qualified(name: str) -> bool:
    prefix, slash, last = name.rpartition("/")
    if slash and (len(prefix) > 253 or not _SUBDOMAIN.fullmatch(prefix)):
        return False
    return bool(_NAME.fullmatch(last))


def _label(key: str, place: At) -> str:
    _label_key(At(place.trait, place.path, key))
    return _label_value(place)


def _label_key(at: At) -> str:
    key = at.text()
    if not _is_qualified(key):
        raise at.error(f"{quote(key)} is not the key of a label")
    return key


def _label_value(at: At) -> str:
    if not isinstance(at.value, str):
        raise at.error(f"{quote(at.value)} is not text; write it in quotes")
    if at.value and not _NAME.fullmatch(at.value):
        raise at.error(
            f"{quote(at.value)} cannot be a label's value; up to 63 letters, digits, "
            "'-', '_' and '.', a letter or digit first and last"
        )
    return at.value


def _term(at: At) -> Frozen:
    fields = at.fields(("matchExpressions", "matchFields"))
    expressions = list(fields["matchExpressions"].items()) if "matchExpressions" in fields else []
    names = list(fields["matchFields"].items()) if "matchFields" in fields else []
    if not expressions and not names:
        raise at.error("an empty term matches no node; write matchExpressions or matchFields")
    for place in expressions:
        _expression(place)
    for place in names:
        _match_field(place)
    return freeze(at.value)


def _requirement(at: At, operators: tuple[str, ...]) -> tuple[Fields, str, list[At]]:
    fields = at.fields(("key", "operator", "values"), required=("key", "operator"))
    operator = _one_of(fields["operator"], operators)
    return fields, operator, list(fields["values"].items()) if "values" in fields else []


def _expression(at: At) -> None:
    operators = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
    fields, operator, values = _requirement(at, operators)
    _label_key(fields["key"])
    match operator:
        case "In" | "NotIn":
            if not values:
                raise at.error(f"{operator} needs values")
            for place in values:
                _label_value(place)
        case "Exists" | "DoesNotExist":
            if values:
                raise fields["values"].error(f"{operator} takes no values")
        case _:
            if len(values) != 1 or not _INTEGER.fullmatch(str(values[0].value)):
                raise at.error(f"{operator} needs one value, a whole number in quotes")
            values[0].text()


def _match_field(at: At) -> None:
    fields, operator, values = _requirement(at, ("In", "NotIn"))
    if fields["key"].text() != "metadata.name":
        raise fields["key"].error("only metadata.name can be matched")
    if len(values) != 1:
        raise at.error(f"{operator} on a field needs exactly one value")
    object_name(values[0])


def _toleration(at: At) -> Frozen:
    fields = at.fields(_TOLERATION)
    operator = _one_of(fields["operator"], ("Equal", "Exists")) if "operator" in fields else "Equal"
    if "key" in fields:
        _label_key(fields["key"])
    elif operator != "Exists":
        raise at.error("without a key the operator must be Exists, which tolerates every taint")
    if "value" in fields:
        _label_value(fields["value"])
        if operator == "Exists" and fields["value"].value:
            raise fields["value"].error("Exists takes no value; use the operator Equal")
    effect = _one_of(fields["effect"], _EFFECTS) if "effect" in fields else ""
    if "tolerationSeconds" in fields:
        seconds = fields["tolerationSeconds"]
        if not isinstance(seconds.value, int) or isinstance(seconds.value, bool):
            raise seconds.error(f"{quote(seconds.value)} is not a whole number of seconds")
        if effect != "NoExecute":
            raise seconds.error("is only allowed with the effect NoExecute")
    return freeze({key: place.value for key, place in fields.items()})


def _volume(at: At, seen: set[str]) -> Frozen:
    entries = dict(at.entries())
    if "name" not in entries:
        raise at.error("'name' is missing")
    _volume_name(entries["name"])
    if entries["name"].value in seen:
        raise entries["name"].error(f"there is another volume {quote(entries['name'].value)}")
    seen.add(str(entries["name"].value))
    sources = [key for key in entries if key != "name"]
    if len(sources) != 1:
        raise at.error("a volume has one source besides its name, such as hostPath or configMap")
    if not isinstance(entries[sources[0]].value, Mapping):
        raise entries[sources[0]].error(f"{quote(entries[sources[0]].value)} is not a mapping")
    return _plain(at)


def _volume_mount(at: At, seen: set[str]) -> Frozen:
    fields = at.fields(_MOUNT, required=("name", "mountPath"))
    _volume_name(fields["name"])
    path = fields["mountPath"].text()
    if not path.startswith("/") or ":" in path:
        raise fields["mountPath"].error(f"{quote(path)} is not an absolute path without ':'")
    if path in seen:
        raise fields["mountPath"].error(f"something else is mounted at {quote(path)}")
    seen.add(path)
    if "readOnly" in fields and not isinstance(fields["readOnly"].value, bool):
        raise fields["readOnly"].error(f"{quote(fields['readOnly'].value)} is not true or false")
    for key in _TEXTS_OF_A_MOUNT:
        if key in fields:
            fields[key].text()
    return freeze({key: place.value for key, place in fields.items()})


def _volume_name(at: At) -> str:
    name = at.text()
    if not _LABEL.fullmatch(name):
        raise at.error(
            f"{quote(name)} is not a volume's name; up to 63 small letters, digits and '-', "
            "a letter or digit first and last"
        )
    return name


def _one_of(at: At, allowed: tuple[str, ...]) -> str:
    text = at.text()
    if text not in allowed:
        raise at.error(f"{quote(text)} is not one of {', '.join(allowed)}")
    return text


def _plain(at: At) -> Frozen:
    try:
        return freeze(at.value)
    except TypeError as error:
        raise at.error(f"{error}; write plain YAML or JSON values") from None
