"""Which grant policy makes of a request."""

import pytest

from gpuspawner.offers.grant import Grant, grant_for
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.user_options import GPURequest, parse

OFFERS = Offers.parse(
    accelerators={"a100": {"counts": [1, 2], "node_selector": {"gpu": "a100"}}},
    images={"pytorch": {"image": "pytorch:1"}},
    memory_choices=["16Gi"],
    cpu_choices=["1500m"],
)


def test_a_grant_contains_the_administrators_entries():
    asked = parse({"gpus": 2}, OFFERS)

    assert grant_for(asked, OFFERS) == Grant(
        accelerator=OFFERS.accelerators["a100"],
        gpus=2,
        image=OFFERS.images["pytorch"],
        memory=16 * 1024**3,
        cpu=1500,
    )


def test_a_server_without_a_gpu_is_granted():
    grant = grant_for(parse({"accelerator": None}, OFFERS), OFFERS)

    assert (grant.accelerator, grant.gpus) == (None, 0)


def test_an_empty_request_keeps_kubespawners_values():
    assert grant_for(GPURequest(), Offers.parse()) == Grant()


@pytest.mark.parametrize(
    "asked",
    [
        GPURequest("h100", 1),
        GPURequest("h100", 0),
        GPURequest("a100", 3),
        GPURequest("a100", 0),
        GPURequest(None, 1),
        GPURequest("a100", 1, image="evil"),
        GPURequest("a100", 1, memory="1Ti"),
        GPURequest("a100", 1, cpu=64),
    ],
)
def test_a_request_that_is_not_on_offer_is_not_granted(asked):
    assert grant_for(asked, OFFERS) is None
