"""Cutting a watch into lines, and reading them."""

from __future__ import annotations

import json

import pytest

from gpuspawner.cluster.client import RequestError
from gpuspawner.cluster.events import LONGEST_LINE, Head, Lines, read_event
from gpuspawner.kube.objects import Undecodable
from gpuspawner.kube.pods import Pod
from tests.unit.makers.scripted import event, obj

pytestmark = pytest.mark.each_python


def as_go_writes(type_: str, **metadata: str) -> bytes:
    """Return an event's line as the API server writes it: fields in its order, no white space."""
    body = {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": {}}
    return json.dumps({"type": type_, "object": body}, separators=(",", ":")).encode()


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_lines_do_not_depend_on_the_chunks(size: int) -> None:
    whole = [b"a" * 20, b"b", b"c" * 300]
    stream = b"\n".join(whole) + b"\n\n \ncut off"
    lines = Lines()

    got = [line for i in range(0, len(stream), size) for line in lines.take(stream[i : i + size])]

    assert got == whole


def test_almost_nothing_is_kept_of_an_endless_line() -> None:
    lines = Lines()
    piece = b"x" * 1_000_000
    for _ in range(100):
        assert lines.take(piece) == []

    assert sum(map(len, lines._begun)) < 10_000
    assert lines.take(b"\nnext\n")[1:] == [b"next"]


def test_the_longest_object_stays_whole_and_a_longer_line_becomes_a_head() -> None:
    lines = Lines()
    longest = b"x" * LONGEST_LINE

    assert lines.take(longest + b"\n") == [longest]
    [head] = lines.take(longest) + lines.take(b"x\n")
    assert isinstance(head, Head)


def test_an_event_has_a_type_a_version_and_an_object() -> None:
    change = read_event("Pod", event("ADDED", obj("a", "42", namespace="x")))

    assert (change.type, change.version) == ("ADDED", "42")
    assert isinstance(change.object, Pod)
    assert change.object.metadata.name == "a"


def test_a_head_names_its_object() -> None:
    places = {"name": "large", "generateName": "l-", "namespace": "x", "uid": "u"}
    line = as_go_writes("MODIFIED", **places, resourceVersion="9", creationTimestamp="")

    change = read_event("Pod", Head(line[:-10]))

    assert (change.type, change.version) == ("MODIFIED", "9")
    assert isinstance(change.object, Undecodable)
    assert (change.object.namespace, change.object.name) == ("x", "large")
    assert change.object.node is None


def test_a_head_names_an_object_without_a_namespace() -> None:
    change = read_event("Node", Head(as_go_writes("ADDED", name="n1", resourceVersion="9")))

    assert isinstance(change.object, Undecodable)
    assert (change.object.kind, change.object.namespace, change.object.name) == ("Node", "", "n1")


def test_a_name_that_is_not_utf8_raises_nothing() -> None:
    head = Head(as_go_writes("ADDED", name="n1").replace(b"n1", b"n\xff"))

    change = read_event("Node", head)

    assert isinstance(change.object, Undecodable)


def test_a_head_without_an_object_is_an_error() -> None:
    with pytest.raises(RequestError, match="longer than any object") as raised:
        read_event("Pod", Head(b"<html>"))
    assert raised.value.status == 410


@pytest.mark.parametrize("kind", ["Pod", "StorageClass"])
def test_an_error_event_is_an_error_for_every_kind(kind: str) -> None:
    with pytest.raises(RequestError, match="too old") as raised:
        read_event(kind, event("ERROR", {"status": "Failure", "message": "too old", "code": 410}))
    assert raised.value.status == 410
