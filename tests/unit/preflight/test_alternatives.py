"""Which variants are tried, and in which order; the preflight judges them."""

import pytest

from gpuspawner.offers.grant import grant_for
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.user_options import GPURequest
from gpuspawner.preflight.alternatives import nearest
from gpuspawner.preflight.decision import Alternative, Difference

pytestmark = pytest.mark.usefixtures("clock")

OFFERS = Offers.parse(
    accelerators={
        "a100": {"display_name": "A100", "node_selector": {"gpu": "a100"}, "counts": [1, 2, 4]},
        "t4": {"display_name": "T4", "node_selector": {"gpu": "t4"}, "counts": [1, 2]},
        "v100": {
            "display_name": "V100",
            "node_selector": {"gpu": "v100"},
            "counts": [4],
            "memory_choices": ["64Gi"],
        },
    },
    images={
        "pytorch": {
            "display_name": "PyTorch",
            "image": "pytorch:1",
            "accelerators": ["a100", "t4", "v100"],
        },
        "plain": {"display_name": "Plain", "image": "plain:1"},
    },
    memory_choices=["8Gi", "16Gi", "32Gi"],
    cpu_choices=[2, 4],
)


def granted(request, offers=OFFERS):
    return grant_for(request, offers)


ASKED = granted(GPURequest("a100", 4, "pytorch", "32Gi", 4))


def search(fits, grant=ASKED):
    """Return all requests that were tried, and those that fit with their differences."""
    seen = []

    def fitting(variant):
        seen.append(variant.request)
        if not fits(variant.request):
            return None
        return Alternative(granted(variant.request), variant.differences, None)

    found = nearest(grant, OFFERS, fitting)
    requests = {granted(request): request for request in seen}
    return seen, [(requests[a.grant], a.differences) for a in found]


def test_if_nothing_fits_there_is_no_alternative():
    seen, found = search(lambda _: False)

    assert found == []
    assert len(seen) == len(set(seen))


NEAREST = {
    "the most GPUs that fit": (
        lambda it: it.accelerator == "a100" and it.gpus < 4,
        GPURequest("a100", 2, "pytorch", "32Gi", 4),
        (Difference.FEWER_GPUS,),
    ),
    "less memory with the same GPUs": (
        lambda it: it.gpus == 4 and it.accelerator == "a100" and it.memory != "32Gi",
        GPURequest("a100", 4, "pytorch", "16Gi", 4),
        (Difference.LESS_MEMORY,),
    ),
    "fewer GPUs and less memory together, if neither helps alone": (
        lambda it: it.gpus == 1 and it.accelerator == "a100" and it.memory == "8Gi",
        GPURequest("a100", 1, "pytorch", "8Gi", 4),
        (Difference.FEWER_GPUS, Difference.LESS_MEMORY),
    ),
    "another model with as many GPUs before one with fewer": (
        lambda it: it.accelerator in ("t4", "v100"),
        GPURequest("v100", 4, "pytorch", "64Gi", 4),
        (Difference.OTHER_ACCELERATOR,),
    ),
    "another model with fewer GPUs rather than none": (
        lambda it: it.accelerator == "t4",
        GPURequest("t4", 2, "pytorch", "32Gi", 4),
        (Difference.OTHER_ACCELERATOR, Difference.FEWER_GPUS),
    ),
    "no GPU, with an image on offer for that": (
        lambda it: it.accelerator is None,
        GPURequest(None, 0, "plain", "32Gi", 4),
        (Difference.NO_GPU,),
    ),
}


@pytest.mark.parametrize(("fits", "nearest_one", "differences"), NEAREST.values(), ids=NEAREST)
def test_the_nearest_alternative_is(fits, nearest_one, differences):
    _, found = search(fits)

    assert found == [(nearest_one, differences)]


def mig(profile):
    return {"resource": f"nvidia.com/mig-{profile}", "node_selector": {"gpu": "mig"}}


KINDS = {
    "small": mig("1g.5gb"),
    "middle": mig("2g.10gb"),
    "large": mig("3g.20gb"),
    "shared": {"resource": "nvidia.com/gpu.shared", "node_selector": {"gpu": "shared"}},
    "a100": {"node_selector": {"gpu": "a100"}},
    "t4": {"node_selector": {"gpu": "t4"}},
}


@pytest.mark.parametrize(
    ("asked", "order"),
    [
        ("a100", ["t4", "shared", "large", "middle", "small"]),
        ("t4", ["a100", "shared", "large", "middle", "small"]),
        ("large", ["middle", "small", "shared", "a100", "t4"]),
        ("small", ["middle", "large", "shared", "a100", "t4"]),
        ("shared", ["a100", "t4", "large", "middle", "small"]),
    ],
)
def test_other_models_of_the_same_kind_and_the_nearest_size_come_first(asked, order):
    offers = Offers.parse(accelerators=KINDS)
    seen = []

    def fitting(variant):
        seen.append(variant.request.accelerator)

    nearest(grant_for(GPURequest(asked, 1), offers), offers, fitting)

    assert seen == [*order, None]


def test_there_are_at_most_three_alternatives_of_different_kinds():
    _, found = search(lambda _: True)

    assert [differences for _, differences in found] == [
        (Difference.FEWER_GPUS,),
        (Difference.LESS_MEMORY,),
        (Difference.OTHER_ACCELERATOR,),
    ]


def test_a_server_without_a_gpu_is_offered_less_memory_or_cpu_and_no_gpu():
    asked = granted(GPURequest(None, 0, "plain", "8Gi", 4))

    _, found = search(lambda _: True, asked)

    assert found == [(GPURequest(None, 0, "plain", "8Gi", 2), (Difference.LESS_CPU,))]


def test_a_refusal_never_costs_more_than_a_few_dozen_evaluations():
    offers = Offers.parse(
        accelerators={
            f"m{i}": {"node_selector": {"gpu": f"m{i}"}, "counts": [1, 2]} for i in range(100)
        }
    )
    judged = []

    assert nearest(granted(GPURequest("m0", 2), offers), offers, judged.append) == ()
    assert len(judged) <= 32


def among(*fits, at_hand="", memory=None):
    """Return the models that are offered instead of `full`, of eight, if these fit."""
    models, sizes = ["full", *"abcdefg"], memory or {}
    offers = Offers.parse(
        accelerators={
            key: {"node_selector": {"gpu": key}, "memory_choices": sizes.get(key, ["8Gi"])}
            for key in models
        }
    )

    def fitting(variant):
        key = variant.request.accelerator
        if key not in fits:
            return None
        made = granted(variant.request, offers)
        return Alternative(made, variant.differences, None, is_at_hand=key == at_hand)

    found = nearest(granted(GPURequest("full", 1, None, "8Gi"), offers), offers, fitting)
    return [it.grant.accelerator.key if it.grant.accelerator else None for it in found]


@pytest.mark.parametrize(
    ("fits", "at_hand", "expected"),
    [("abc", "", "a"), ("abc", "c", "c"), ("abc", "a", "a"), ("ae", "e", "e"), ("af", "f", "a")],
    ids=["none", "the last", "the first", "the fifth", "too late to look at it"],
)
def test_of_equal_models_the_one_whose_image_is_there_comes_first(fits, at_hand, expected):
    assert among(*fits, at_hand=at_hand) == [expected]


def test_a_model_with_less_memory_is_not_equal_even_if_its_image_is_there():
    assert among("a", "b", at_hand="b", memory={"b": ["4Gi"]}) == ["a"]


def test_choices_that_are_not_on_offer_stay_unset():
    offers = Offers.parse(accelerators={"t4": {"node_selector": {"a": "b"}, "counts": [1]}})
    seen = []

    nearest(granted(GPURequest("t4", 1), offers), offers, seen.append)

    assert [variant.request for variant in seen] == [GPURequest()]
