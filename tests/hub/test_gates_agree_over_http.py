"""By form, by query and by REST a person is refused for the same reason."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import islice

import pytest
import requests

from gpuspawner.offers import Offers
from gpuspawner.options import GPURequest, parse
from localcluster import LocalCluster
from tests.fixtures.cluster import AddNodes
from tests.hub.configurations import ANSWER_AT_ONCE
from tests.hub.conftest import StartGPUHub
from tests.hub.option_sets import FLEET, OFFERS, OptionSet, as_form, option_sets
from tests.hub.running import RunningHub

SEED = int(os.environ.get("GPUSPAWNER_SEED", "20261121"))
COUNT = 20
CONFIGURATION = f"c.GPUSpawner.update({dict(OFFERS)!r})\n"
FULL = {"busy", "away", "absent"}

_REFUSED = re.compile(r"Not starting (\S+) \(([a-z-]+)\)")


def refused_sets() -> Iterator[OptionSet]:
    """Those that cannot start here, since a start takes a second of everybody's time."""
    offers = Offers.parse(**OFFERS)
    for options in option_sets(SEED):
        read = parse(options, offers)
        if options and (not isinstance(read, GPURequest) or read.accelerator in FULL):
            yield options


@pytest.mark.parametrize("answers", ["", ANSWER_AT_ONCE], ids=["when it knows", "at once"])
def test_a_no_has_the_same_reason_whichever_way_one_asks(
    start_gpu_hub: StartGPUHub, cluster: LocalCluster, add_nodes: AddNodes, answers: str
) -> None:
    add_nodes(FLEET)
    cluster.api.patch("/api/v1/nodes/away-0", {"spec": {"unschedulable": True}})
    print(f"seed {SEED}")
    with start_gpu_hub(CONFIGURATION + answers) as hub:
        hub.start("holder", {"accelerator": "busy", "image": "lab", "memory": "1Gi"})
        hub.until_ready("holder")
        asked = list(islice(refused_sets(), COUNT))

        for number, options in enumerate(asked):
            _ask_in_every_way(hub, number, options, answers)

        reasons: dict[str, str] = dict(_REFUSED.findall(hub.log))
        for number, options in enumerate(asked):
            told = {way: reasons.get(f"{way}{number}") for way in ("form", "query", "rest")}
            assert len(set(told.values())) == 1, f"{options}, seed {SEED}: {told}"
            assert None not in told.values(), options
        assert set(reasons.values()) >= {"invalid-options", "busy", "away", "impossible"}
        assert hub.pods.names() == {"jupyter-holder"}


def _ask_in_every_way(hub: RunningHub, number: int, options: OptionSet, answers: str) -> None:
    form = {name: values[0] for name, values in as_form(options).items()}
    assert 400 <= hub.person(f"form{number}").submit(form).status < 500
    query = {f"opt-{name}": value for name, value in form.items()}
    path = requests.Request("GET", "http://hub/hub/spawn", params=query).prepare().path_url
    assert 400 <= hub.person(f"query{number}").open(path).status < 500
    _ask_by_rest(hub, f"rest{number}", options, answers)


def _ask_by_rest(hub: RunningHub, user: str, options: OptionSet, answers: str) -> None:
    status = hub.start(user, options).status_code
    if answers == ANSWER_AT_ONCE and status in {201, 202}:
        # This hub doesn't wait for the API server's admission: the refusal ends the start.
        hub.events_end(user)
        assert not hub.server(user).get("ready")
    else:
        assert 400 <= status < 500
