from gpuspawner.kube.meta import LabelSelector, LabelSelectorRequirement
from gpuspawner.scheduling.by_label import ByLabel
from gpuspawner.scheduling.labels import EVERYTHING, compile_selector


def one_of(key, *values):
    expression = LabelSelectorRequirement(key, "In", values)
    return compile_selector(LabelSelector(match_expressions=(expression,)))


THINGS = ByLabel(
    [
        (one_of("node", "b"), "on b"),
        (one_of("node", "a"), "on a"),
        (one_of("node", "a", "b"), "on a or b"),
        (one_of("zone", "z"), "in z"),
        (EVERYTHING, "anywhere"),
        (one_of("node", "a"), "on a too"),
    ]
)


def test_a_node_is_near_what_may_match_it_in_the_given_order():
    assert [*THINGS.near({"node": "a"})] == ["on a", "on a or b", "anywhere", "on a too"]
    assert [*THINGS.near({"node": "b", "zone": "z"})] == [
        "on b",
        "on a or b",
        "in z",
        "anywhere",
    ]
    assert [*THINGS.near({})] == ["on a or b", "anywhere"]


def test_only_without_things_is_it_empty():
    assert THINGS
    assert len(ByLabel()) == 0
