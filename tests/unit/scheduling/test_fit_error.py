from gpuspawner.scheduling import evaluate
from tests.unit.makers.objects import cluster, node, pod


def test_the_message_counts_every_reason_of_every_node():
    taint = {"key": "x", "effect": "NoSchedule"}
    nodes = [node("a"), node("b", cpu="0"), *(node(n, taints=[taint]) for n in "cd")]
    verdict = evaluate(cluster(*nodes), pod(requests={"gpu": "1", "cpu": "1"}))
    assert verdict.message == (
        "0/4 nodes are available: 1 Insufficient cpu, 2 Insufficient nvidia.com/gpu,"
        " 2 node(s) had untolerated taint(s)."
    )
