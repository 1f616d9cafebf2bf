"""People wait in line for one of KubeSpawner's profiles."""

import pytest
import requests

from tests.hub.configurations import ANSWER_AT_ONCE, t4_nodes
from tests.hub.lines import told
from tests.hub.policies.test_policy_attempts_by_rest import own_token

GPU = {"extra_resource_limits": {"nvidia.com/gpu": "1"}, "node_selector": {"gpu": "t4"}}
PROFILE = {"slug": "gpu", "display_name": "GPU server", "kubespawner_override": GPU}
PROFILES = f"c.KubeSpawner.profile_list = {[PROFILE]!r}\n"


@pytest.mark.parametrize(
    ("queue", "status"), [(True, 202), ({"profiles": ["gpu"]}, 202), ({"profiles": ["x"]}, 409)]
)
def test_a_profile_is_waited_for_if_the_rules_allow_it(start_gpu_hub, add_nodes, queue, status):
    add_nodes(t4_nodes(1, 1))
    line = f"c.GPUSpawner.queue = {queue!r}\n"
    with start_gpu_hub(PROFILES + ANSWER_AT_ONCE + line) as hub:
        hub.start_until_ready("alice", {"profile": "gpu"})

        assert hub.start("bob", {"profile": "gpu", "wait": True}).status_code == status

        if status == 202:
            said = "You are next in line. You are waiting for “GPU server” (1 × GPU)."
            assert told(hub, "bob") == said
            numbers = requests.get(
                f"{hub.url}/hub/gpuspawner/line", **own_token(hub, "eve"), timeout=9
            )
            assert numbers.json() == {"servers": 1, "accelerators": {}}
            hub.stop("alice")
            hub.until_ready("bob")
            assert hub.server("bob")["user_options"] == {"profile": "gpu"}
