"""Whom a pod counts for, whatever is written on it; annotations only ever add to a count."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubespawner.slugs import escape_slug

from gpuspawner.kube.servers import GRANT, SERVER, USER, ServerMeta
from gpuspawner.policy import granted
from gpuspawner.policy.charges import owner_names
from gpuspawner.policy.owner import Names
from gpuspawner.policy.policies import Measure, Policy
from gpuspawner.policy.shares import covers, most
from gpuspawner.policy.usage import Usage
from tests.unit.policy.charging import GPUS, METER, SERVERS, gpus
from tests.unit.policy.pods import (
    Plain,
    annotations_of,
    container,
    labels_of,
    plain,
    read,
    server_pod,
)

pytestmark = pytest.mark.each_python

# Pods that gpuspawner didn't make


def test_the_pod_of_a_profile_counts_by_what_it_requests() -> None:
    override = plain(nodeSelector={"gpu": "t4"}, containers=[container(gpu=2)])

    charge = METER.charge(read(override))

    assert (charge.of(GPUS), charge.of(gpus("t4"))) == (2, 2)
    assert (charge.policies, charge.groups) == (frozenset(), frozenset())


def test_a_pod_with_only_the_label_belongs_to_the_label_s_user() -> None:
    """Of a KubeSpawner that wrote no annotations, or edited since."""
    charge = METER.charge(server_pod(metadata={"annotations": {}, "labels": {USER: "ann"}}))

    assert charge.owners == {"label/ann"}
    assert charge.owners & owner_names("ann", "ann")
    assert charge.of(GPUS) == 1


@pytest.mark.parametrize("user", ["ann", "Ann Smith", "ann@example.org", "ann--x", "ä" * 80])
def test_a_server_s_pod_has_the_names_of_its_owner_and_none_of_anyone_else(user) -> None:
    charge = METER.charge(server_pod(user, "Exp. 1"))

    person_s = owner_names(user, labels_of(user)[USER])
    assert charge.owners == person_s
    assert (charge.server, charge.any_server) == ("Exp. 1", False)
    assert not charge.owners & owner_names("bob", "bob")


@given(st.text(st.characters(exclude_characters="/"), min_size=1), st.text(min_size=1, max_size=63))
def test_no_user_s_name_is_the_label_of_another_user(name, label) -> None:
    """No name contains a slash: JupyterHub refuses these."""
    assert name not in owner_names("", label)


@pytest.mark.parametrize("metadata", [{"annotations": None}, {"annotations": {}, "labels": None}])
def test_a_pod_without_annotations_or_labels_can_be_read(metadata) -> None:
    pod = read({"metadata": {"name": "x", **metadata}, "spec": {}})

    assert METER.charge(pod).owners == set()


# Edited pods


def used(policy: Policy, measure: Measure, *pods: Plain, user: str = "ann") -> Any:
    """What those pods take of a user's limit."""
    usage = Usage()
    for number, pod in enumerate(pods):
        usage.put(("jhub", str(number)), METER.charge(read(pod)))
    found = usage.of_owner(owner_names(user, labels_of(user)[USER])).values()
    covered = ((it for it in charges if covers(policy, it)) for charges in found)
    return sum(most(charges, measure) for charges in covered)


EDITS: list[dict[str, str]] = [
    {},
    {USER: "bob"},
    {SERVER: "other"},
    {USER: "bob", SERVER: ""},
    {GRANT: "{}"},
    {GRANT: '{"accelerator":"t4","policies":["x"],"groups":["y"]}'},
    {GRANT: '{"accelerator":"any"}'},
]


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("server", ["", "exp-1", "Exp. 1"])
@pytest.mark.parametrize("pattern", ["*", "exp-*", "Exp*", ""])
def test_an_edited_annotation_never_lowers_a_count(edit, server, pattern) -> None:
    policy = Policy("p", servers=Names.of([pattern]))
    original = plain(server=server, nodeSelector={"gpu": "t4"}, grant={"accelerator": "t4"})
    written = {**original["metadata"]["annotations"], **edit}
    edited = {**original, "metadata": {**original["metadata"], "annotations": written}}

    for measure in (GPUS, gpus("t4"), SERVERS):
        assert used(policy, measure, edited) >= used(policy, measure, original)


@given(
    st.dictionaries(st.sampled_from([USER, SERVER, GRANT]), st.text(max_size=8)),
    st.sampled_from(["", "exp-1", "Exp. 1", "a--b"]),
    st.sampled_from(["*", "exp-*", "[!e]*", "", "Exp. ?"]),
)
def test_no_annotations_whatever_they_say_lower_a_count(written, server, pattern) -> None:
    policy = Policy("p", servers=Names.of([pattern]))
    original = plain(server=server)
    edited = {**original, "metadata": {**original["metadata"], "annotations": written}}

    assert used(policy, GPUS, edited) >= used(policy, GPUS, original)


def test_a_server_whose_label_and_annotation_disagree_counts_toward_every_policy() -> None:
    pod = plain(server="exp-1", metadata={"annotations": annotations_of("ann", "harmless")})

    charge = METER.charge(read(pod))

    assert (charge.server, charge.any_server) == ("harmless", True)
    assert used(Policy("p", servers=Names.of(["exp-*"])), GPUS, pod) == 1
    assert used(Policy("p", servers=Names.of([""])), GPUS, pod) == 1


@pytest.mark.parametrize("server", ["exp-1", "exp1", "Exp. 1", ""])
def test_the_labels_of_an_older_kubespawner_agree_too(server) -> None:
    older = {USER: escape_slug("ann"), SERVER: escape_slug(server)}
    pod = server_pod(server=server, metadata={"labels": older})

    charge = METER.charge(pod)

    assert (charge.server, charge.any_server) == (server, False)


def test_a_pod_that_two_users_seem_to_own_counts_for_both() -> None:
    pod = plain("ann", metadata={"annotations": annotations_of("bob")})

    assert used(Policy("p"), GPUS, pod) == 1
    assert used(Policy("p"), GPUS, pod, user="bob") == 1


HOSTILE = [
    "",
    "null",
    "[]",
    '"x"',
    "{",
    '{"policies": "p"}',
    '{"policies": [1]}',
    '{"groups": {"a": 1}}',
    '{"lifetime": "1"}',
    '{"accelerator": null}',
    "[" * 10_000,
    '{"groups": ' + "[" * 5_000,
    json.dumps({"groups": ["x" * granted.LONGEST]}),
    "\ud800",
    "\x00",
]


@pytest.mark.parametrize("written", HOSTILE, ids=range(len(HOSTILE)))
def test_an_annotation_that_cannot_be_read_says_nothing(written) -> None:
    pod = server_pod(nodeSelector={"gpu": "t4"})
    meta = replace_annotation(pod.metadata, written)

    charge = METER.charge(type(pod)(meta, pod.spec, pod.status))

    assert charge == METER.charge(pod)


def replace_annotation(meta: ServerMeta, grant: str) -> ServerMeta:
    assert meta.annotations is not None
    changed: ServerMeta = msgspec.structs.replace(
        meta, annotations=msgspec.structs.replace(meta.annotations, grant=grant)
    )
    return changed


def test_what_a_pod_says_of_policies_and_groups_is_kept() -> None:
    grant = {"policies": ["a", "b"], "groups": ["course"], "newer": "key"}

    charge = METER.charge(server_pod(grant=grant))

    assert (charge.policies, charge.groups) == ({"a", "b"}, {"course"})
