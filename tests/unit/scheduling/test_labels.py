import pytest

from gpuspawner.kube.meta import LabelSelector, LabelSelectorRequirement, NodeSelector
from gpuspawner.kube.meta import NodeSelectorTerm as Term
from gpuspawner.scheduling.labels import (
    SelectorError,
    compile_node_selector,
    compile_selector,
    int64,
)

LABELS = {"app": "hub", "gpus": "8", "empty": ""}


def one(key, operator, *values):
    return LabelSelectorRequirement(key=key, operator=operator, values=list(values))


@pytest.mark.parametrize(
    ("requirement", "selected"),
    [
        (one("empty", "Exists"), True),
        (one("gpus", "Gt", "8"), False),
        (one("app", "Gt", "1"), False),
        (one("none", "Lt", "1"), False),
    ],
)
def test_a_requirement_matches_like_in_kubernetes(requirement, selected):
    terms = compile_node_selector(
        NodeSelector(node_selector_terms=[Term(match_expressions=[requirement])])
    )
    assert any(term.matches(LABELS, "a") for term in terms) is selected


def test_no_selector_matches_nothing_and_an_empty_one_everything():
    assert not compile_selector(None).matches(LABELS)
    assert compile_selector(LabelSelector()).matches({})


def test_an_invalid_term_does_not_affect_the_other_terms():
    wrong = Term(match_expressions=[one("app", "Near", "hub")])
    right = Term(match_expressions=[one("app", "In", "hub")])
    terms = compile_node_selector(NodeSelector(node_selector_terms=[wrong, right]))
    assert [term.matches(LABELS, "a") for term in terms] == [True]


@pytest.mark.parametrize(
    "requirement",
    [
        one("app", "In"),
        one("app", "Exists", "x"),
        one("app", "Gt", "1"),
        one("not a key", "In", "x"),
        one("app", "In", "not a value"),
    ],
)
def test_a_label_selector_that_the_api_would_refuse_is_an_error(requirement):
    with pytest.raises(SelectorError):
        compile_selector(LabelSelector(match_expressions=[requirement]))


@pytest.mark.parametrize(
    ("text", "number"),
    [("7", 7), ("+7", 7), ("-7", -7), ("7.0", None), ("", None), ("9" * 19, None), ("7_0", None)],
)
def test_numbers_are_parsed_like_in_go(text, number):
    assert int64(text) == number
