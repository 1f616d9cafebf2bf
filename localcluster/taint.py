"""Taints of nodes."""

from dataclasses import dataclass

from localcluster import fields

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


@dataclass(frozen=True)
class Taint:
    """A taint as the Kubernetes API has it; effect is one of `EFFECTS`."""

    key: str
    value: str
    effect: str


def parse_taints(where: str, data: object) -> tuple[Taint, ...]:
    """Read a list of taints.

    Raises:
        FleetError: a field is missing, unknown or has an invalid value.
    """
    taints = fields.items(where, data)
    return tuple(_taint(f"{where}[{number}]", taint) for number, taint in enumerate(taints))


def _taint(where: str, data: object) -> Taint:
    given = fields.fields(where, data, required=("key", "effect"), optional=("value",))
    return Taint(
        key=fields.qualified_name(f"{where}.key", given["key"]),
        value=fields.label_value(f"{where}.value", given.get("value", ""), "a taint value"),
        effect=fields.one_of(f"{where}.effect", given["effect"], EFFECTS),
    )
