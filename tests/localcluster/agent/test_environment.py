"""What a container's process is started with."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localcluster.agent.environment import (
    at_address,
    command_line,
    container_variables,
    expand,
)
from localcluster.client import Object

POD: Object = {
    "metadata": {"name": "jupyter-alice", "namespace": "jhub", "uid": "1"},
    "spec": {"nodeName": "t4-0"},
}


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$(A)", "1"),
        ("x$(A)y$(A)", "x1y1"),
        ("$(B)", "$(B)"),
        ("$$(A)", "$(A)"),
        ("$A ${A}", "$A ${A}"),
        ("$(A", "$(A"),
    ],
)
def test_references_are_expanded_as_kubernetes_does(text: str, expanded: str) -> None:
    assert expand(text, {"A": "1"}) == expanded


@given(st.text(alphabet=st.characters(exclude_characters="$")))
def test_text_without_a_dollar_stays(text: str) -> None:
    assert expand(text, {"A": "1"}) == text


def test_variables_may_refer_to_those_before_and_to_the_pods_fields() -> None:
    env = [
        {"name": "EMPTY"},
        {"name": "A", "value": "1"},
        {"name": "B", "value": "$(A)$(LATER)"},
        {"name": "LATER", "value": "2"},
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    ]

    variables = container_variables(POD, {"env": env}, "127.64.0.9")

    assert variables == {
        "EMPTY": "",
        "A": "1",
        "B": "1$(LATER)",
        "LATER": "2",
        "NODE": "t4-0",
        "IP": "127.64.0.9",
    }


def test_a_notebook_server_listens_on_its_pods_own_address() -> None:
    env = [{"name": "JUPYTERHUB_SERVICE_URL", "value": "http://0.0.0.0:8888/user/alice/"}]

    variables = container_variables(POD, {"env": env}, "127.64.0.9")

    assert variables["JUPYTERHUB_SERVICE_URL"] == "http://127.64.0.9:8888/user/alice/"


@pytest.mark.parametrize(
    ("url", "moved"),
    [
        ("http://[::]:8888/", "http://127.64.0.9:8888/"),
        ("http://0.0.0.0/", "http://127.64.0.9/"),
        ("http://10.1.2.3:8888/", "http://10.1.2.3:8888/"),
    ],
)
def test_only_any_address_is_replaced(url: str, moved: str) -> None:
    assert at_address(url, "127.64.0.9") == moved


def test_a_command_and_its_arguments_make_the_line() -> None:
    container = {"command": ["python3", "-m"], "args": ["$(MODULE)"]}

    line = command_line(container, {"MODULE": "this"}, is_root=True)

    assert line == ["python3", "-m", "this"]


def test_a_container_without_a_command_has_no_line() -> None:
    assert command_line({}, {}, is_root=True) == []


@pytest.mark.parametrize(("is_root", "extra"), [(True, ["--allow-root"]), (False, [])])
def test_jupyter_is_allowed_to_run_as_root_where_it_is(is_root: bool, extra: list[str]) -> None:
    line = command_line({"args": ["/opt/bin/jupyterhub-singleuser"]}, {}, is_root=is_root)

    assert line == ["/opt/bin/jupyterhub-singleuser", *extra]


def test_jupyter_is_not_told_twice() -> None:
    container = {"args": ["jupyterhub-singleuser", "--allow-root"]}

    assert command_line(container, {}, is_root=True) == container["args"]
