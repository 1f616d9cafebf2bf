"""Decisions about a pod at one moment, on states that a test sets."""

from __future__ import annotations

import pytest

from gpuspawner.kube.objects import KINDS
from gpuspawner.offers import Offers
from gpuspawner.options import GPURequest
from gpuspawner.policy import Grant
from gpuspawner.preflight.decision import (
    AfterPreemption,
    Alternative,
    Difference,
    Reason,
    Refuse,
    Room,
    Start,
    TaintedNodes,
    UnknownRules,
)
from gpuspawner.preflight.preflight import Preflight
from gpuspawner.preflight.proposal import Proposal
from tests.unit.preflight.worlds import (
    A100,
    GPU,
    NAMESPACE,
    ONE_FREE,
    Instead,
    StillView,
    growing,
    node,
    pod,
    preflight_on,
    proposal,
)


def refusal(preflight: Preflight, what: Proposal) -> Refuse:
    decision = preflight.check(what)
    assert isinstance(decision, Refuse), decision
    return decision


def alternatives(what: Proposal, instead: Instead) -> tuple[Alternative, ...]:
    """Return the alternatives to a refused proposal while one GPU is free."""
    preflight = preflight_on(*ONE_FREE)
    refusal(preflight, what)
    return preflight.alternatives(what, instead)


def test_a_pod_with_room_starts_without_a_note() -> None:
    what = proposal("a", 1)

    assert preflight_on(*ONE_FREE).check(what) == Start(what.grant)


def test_a_refusal_says_how_much_is_asked_and_how_much_is_free() -> None:
    objects = [*ONE_FREE, ("Node", node("m", 2)), ("Pod", pod("y", 1, on="m"))]

    refused = refusal(preflight_on(*objects), proposal("a", 2))

    assert refused.reason is Reason.BUSY
    assert refused.gpus == Room(GPU, asked=2, most_free=1, free=2, most=2, total=4)
    assert refused.shortage == refused.gpus
    assert refused.candidates == 2
    assert refused.view_age == 0.5
    assert refused.scheduler_message.startswith(
        "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
    )


def test_more_than_any_node_has_is_impossible() -> None:
    assert refusal(preflight_on(*ONE_FREE), proposal("a", 4)).reason is Reason.IMPOSSIBLE


def test_if_gpus_are_free_the_shortage_is_what_their_nodes_lack() -> None:
    hungry = proposal("a", 1)
    requests = {GPU: "1", "memory": "300Gi"}
    container = {"name": "notebook", "resources": {"requests": requests}}
    spec = {"containers": [container], "nodeSelector": {"gpu": "a100"}}
    hungry = Proposal(NAMESPACE, "a", {"metadata": {"name": "a"}, "spec": spec}, hungry.grant)
    full = [("Node", node("full", 1)), ("Pod", pod("y", 1, on="full"))]

    refused = refusal(preflight_on(*ONE_FREE, *full), hungry)

    gib = 2**30
    assert refused.gpus == Room(GPU, 1, most_free=1, free=1, most=2, total=3)
    assert refused.shortage == Room("memory", 300 * gib, 255 * gib, 255 * gib, 256 * gib, 256 * gib)


def test_a_taint_in_the_way_is_named() -> None:
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    tainted = [("Node", node(name, 2, taints=[taint])) for name in ("n", "m")]

    refused = refusal(preflight_on(*tainted), proposal("a"))

    assert refused.reason is Reason.IMPOSSIBLE
    assert refused.taints == (TaintedNodes("nvidia.com/gpu", "present", "NoSchedule", nodes=2),)
    assert refused.candidates == 0
    assert refused.shortage is None


def test_away_nodes_have_a_reason_of_their_own() -> None:
    refused = refusal(preflight_on(("Node", node("n", 2, unschedulable=True))), proposal("a"))

    assert refused.reason is Reason.AWAY
    assert (refused.away, refused.candidates, refused.taints) == (1, 0, ())


def test_a_server_without_a_gpu_is_refused_without_gpu_figures() -> None:
    refused = refusal(preflight_on(), proposal("a", 0))

    assert refused.gpus is None


@pytest.mark.parametrize(
    ("grace", "seconds"),
    [
        ({"terminationGracePeriodSeconds": 0}, 0),
        ({"terminationGracePeriodSeconds": 600}, 600),
        ({}, 30),
    ],
    ids=["a placeholder", "a batch job", "the API server's default"],
)
def test_a_start_by_preemption_says_how_long_others_may_take_to_end(
    grace: dict[str, int], seconds: int
) -> None:
    others = pod("x", 1, on="n", priority=-10, **grace)
    what = proposal("a", 1)

    decision = preflight_on(("Node", node("n", 1)), ("Pod", others)).check(what)

    assert decision == Start(what.grant, (AfterPreemption(seconds),))


def at_hand(on: str, image: str = "lab:1") -> list[bool]:
    """Return whether the alternative is at hand if this node lists an image."""
    objects = [
        ("Node", node("free", 1)),
        ("Node", node("full", 2)),
        ("Pod", pod("x", 2, on="full")),
    ]
    for _, plain in objects:
        if plain["metadata"]["name"] == on:
            plain["status"]["images"] = [{"names": [image], "sizeBytes": 1}]

    class WithImage(Instead):
        def variant(self, request: GPURequest) -> tuple[Grant, dict[str, object]] | None:
            made = super().variant(request)
            if made is not None:
                made[1]["spec"]["containers"][0]["image"] = "docker.io/library/lab:1"
            return made

    offers = Offers(accelerators={"a100": A100})
    found = preflight_on(*objects).alternatives(proposal("a", 2), WithImage(offers))
    return [it.is_at_hand for it in found if it.grant.gpus == 1]


def test_an_alternative_is_at_hand_if_a_node_with_room_has_its_image() -> None:
    assert at_hand("free") == [True]
    assert at_hand("full") == [False]
    assert at_hand("free", "lab:2") == [False]


def test_an_unknown_verdict_lets_the_pod_start_with_a_note() -> None:
    what = proposal("a", 1, schedulerName="volcano")

    decision = preflight_on(*ONE_FREE).check(what)

    assert decision == Start(
        what.grant, (UnknownRules(("another scheduler places the pod: volcano",)),)
    )


def test_an_undecodable_pod_starts_with_a_note() -> None:
    what = Proposal(NAMESPACE, "a", {"spec": {"containers": "many"}}, Grant())

    decision = preflight_on(*ONE_FREE).check(what)

    assert isinstance(decision, Start)
    assert isinstance(decision.notes[0], UnknownRules)


def test_a_pod_that_no_node_could_hold_does_not_wait_for_one() -> None:
    going = {"name": "c", "namespace": NAMESPACE, "deletionTimestamp": "2026-01-01T00:00:00Z"}
    home = {"name": "home", "persistentVolumeClaim": {"claimName": "c"}}
    view = StillView(("Node", node("n", 0)), ("PersistentVolumeClaim", {"metadata": going}))
    for kind in KINDS:
        view.state.mark_known(kind)
    what = Proposal(NAMESPACE, "a", pod("a", volumes=[home]), Grant(growing(max_nodes=2), 1))

    assert isinstance(Preflight(view).check(what), Refuse)


def test_an_over_committed_node_takes_nothing_from_another() -> None:
    shrunk = [("Pod", pod(f"p{i}", 1, on="shrunk")) for i in range(3)]

    preflight = preflight_on(*ONE_FREE, ("Node", node("shrunk", 1)), *shrunk)

    refused = refusal(preflight, proposal("a", 2))

    assert refused.gpus == Room(GPU, asked=2, most_free=1, free=1, most=2, total=3)


def test_a_pool_at_its_maximum_refuses() -> None:
    full = [("Node", node("n", 1)), ("Pod", pod("x", 1, on="n"))]
    what = Proposal(NAMESPACE, "a", pod("a"), Grant(growing(max_nodes=1), 1))

    assert refusal(preflight_on(*full), what).reason is Reason.BUSY


def test_alternatives_are_judged_as_the_pods_they_would_be() -> None:
    offers = Offers.parse(
        accelerators={
            "a100": {
                "display_name": "A100",
                "node_selector": {"gpu": "a100"},
                "counts": [1, 2, 4],
            }
        }
    )
    what = Proposal(NAMESPACE, "a", pod("a", 4), Grant(offers.accelerators["a100"], 4))

    [fewer, none] = alternatives(what, Instead(offers))

    assert (fewer.grant.gpus, fewer.differences) == (1, (Difference.FEWER_GPUS,))
    assert fewer.gpus == Room(GPU, asked=1, most_free=1, free=1, most=2, total=2)
    assert (none.grant, none.differences, none.gpus) == (Grant(), (Difference.NO_GPU,), None)


class Denying(Instead):
    """Policy that denies every other request."""

    def variant(self, _: GPURequest) -> None:
        return None


def test_a_choice_that_policy_denies_is_no_alternative() -> None:
    what = Proposal(NAMESPACE, "a", pod("a", 4), Grant(A100, 4))

    assert alternatives(what, Denying(Offers(accelerators={"a100": A100}))) == ()
