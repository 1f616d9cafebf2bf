"""Keeping servers without a GPU off the accelerators' nodes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.manifest import ManifestError, off
from gpuspawner.manifest.apply import MOST_TERMS
from gpuspawner.manifest.node_affinity import write
from gpuspawner.offers import Offers

LABELS = ("a", "b", "c")


def avoiding(*selectors: Mapping[str, str]) -> list[dict[str, object]]:
    configured = {f"m{n}": {"node_selector": labels} for n, labels in enumerate(selectors)}
    return write(off(Offers.parse(accelerators=configured).accelerators.values()))


def test_without_accelerators_there_are_no_terms() -> None:
    assert avoiding() == []


def test_models_with_one_label_each_make_one_term() -> None:
    assert len(avoiding(*({"gpu": f"model-{number}"} for number in range(50)))) == 1


def test_models_that_share_a_label_make_few_terms() -> None:
    made = avoiding(*({"pool": "gpu", "gpu": f"model-{number}"} for number in range(50)))

    assert len(made) == 2


def test_too_many_terms_are_an_error_that_names_the_accelerator() -> None:
    with pytest.raises(ManifestError, match="one label alone") as raised:
        avoiding(*({f"a{number}": "x", f"b{number}": "y"} for number in range(60)))

    assert raised.value.accelerator == f"m{MOST_TERMS.bit_length() - 1}"


selectors = st.lists(
    st.dictionaries(st.sampled_from(LABELS), st.sampled_from("xy"), min_size=1), max_size=4
)


@given(selectors)
def test_a_node_matches_exactly_if_no_accelerator_could_run_there(given) -> None:
    terms = avoiding(*given)

    for values in product(("x", "y", None), repeat=len(LABELS)):
        node = {label: value for label, value in zip(LABELS, values, strict=True) if value}
        could_run = any(labels.items() <= node.items() for labels in given)
        assert not terms or any(_matches(term, node) for term in terms) != could_run


def _matches(term: dict[str, object], node: Mapping[str, str]) -> bool:
    lines = term["matchExpressions"]
    assert isinstance(lines, list)
    assert {line["operator"] for line in lines} == {"NotIn"}
    return all(node.get(line["key"]) not in line["values"] for line in lines)
