"""Form, query and REST refuse a user for the same reason."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import islice

import pytest
import requests

from gpuspawner.offers.offers import Offers
from gpuspawner.offers.user_options import GPURequest, parse
from localcluster import LocalCluster
from tests.fixtures.cluster import AddNodes
from tests.hub.configurations import ANSWER_AT_ONCE
from tests.hub.conftest import StartGPUHub
from tests.hub.option_sets import FLEET, OFFERS, OptionSet, as_form, option_sets
from tests.hub.running import RunningHub

pytestmark = pytest.mark.each_hub

SEED = int(os.environ.get("GPUSPAWNER_SEED", "20261121"))
COUNT = 20
CONFIGURATION = f"c.GPUSpawner.update({dict(OFFERS)!r})\n"
FULL = {"busy", "away", "absent"}
WAYS = ("form", "query", "rest")  # and the names of the users

_REFUSED = re.compile(r"Not starting (\S+) \(([a-z-]+)\)")


def refused_sets() -> Iterator[OptionSet]:
    """Yield option sets that can't start here, because each start would take a second."""
    offers = Offers.parse(**OFFERS)
    for options in option_sets(SEED):
        read = parse(options, offers)
        if options and (not isinstance(read, GPURequest) or read.accelerator in FULL):
            yield options


@pytest.mark.parametrize("answers", ["", ANSWER_AT_ONCE], ids=["when it knows", "at once"])
def test_form_query_and_rest_refuse_for_the_same_reason(
    start_gpu_hub: StartGPUHub, cluster: LocalCluster, add_nodes: AddNodes, answers: str
) -> None:
    add_nodes(FLEET)
    cluster.api.patch("/api/v1/nodes/away-0", {"spec": {"unschedulable": True}})
    print(f"seed {SEED}")
    with start_gpu_hub(CONFIGURATION + answers) as hub:
        hub.start_until_ready("holder", {"accelerator": "busy", "image": "lab", "memory": "1Gi"})
        by_form, by_query = hub.person("form"), hub.person("query")
        asked = list(islice(refused_sets(), COUNT))

        for options in asked:
            form = {name: values[0] for name, values in as_form(options).items()}
            assert 400 <= by_form.submit(form).status < 500
            assert 400 <= by_query.open(_with_query(form)).status < 500
            _ask_by_rest(hub, options, answers)

        told = _REFUSED.findall(hub.log)
        reasons = {way: [why for name, why in told if name == way] for way in WAYS}
        for options, *whys in zip(asked, *reasons.values(), strict=True):
            assert len(set(whys)) == 1, f"{options}, seed {SEED}: {WAYS} {whys}"
        assert set(reasons["rest"]) >= {"invalid-options", "busy", "away", "impossible"}
        assert hub.pods.names() == {"jupyter-holder"}


def _with_query(form: dict[str, str]) -> str:
    query = {f"opt-{name}": value for name, value in form.items()}
    return requests.Request("GET", "http://hub/hub/spawn", params=query).prepare().path_url


def _ask_by_rest(hub: RunningHub, options: OptionSet, answers: str) -> None:
    status = hub.start("rest", options).status_code
    if answers == ANSWER_AT_ONCE and status in {201, 202}:
        # This hub doesn't wait for the API server's admission: the refusal ends the start.
        hub.events_end("rest")
        assert not hub.server("rest").get("ready")
    else:
        assert 400 <= status < 500
