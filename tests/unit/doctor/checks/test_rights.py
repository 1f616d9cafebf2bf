"""What the doctor says of rights, by an API server's own word."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web

from gpuspawner.cluster.autoscaler_objects import STATUS
from gpuspawner.cluster.health import Forbidden, Health, Live
from gpuspawner.cluster.kinds import KINDS
from gpuspawner.doctor.checks import rights
from gpuspawner.kube.objects import convert
from gpuspawner.messages.administrators import GRANT, Finding, Severity
from gpuspawner.policies.policies import Limit, Measure, Per, Policies, Policy, What
from gpuspawner.scheduling import ClusterState
from tests.unit.makers.profile_lists import CPU
from tests.unit.makers.scripted import ScriptedServer, Step, failure, page
from tests.unit.makers.surveyed import node

ON_GKE = node("a", 1, spec={"providerID": "gce://project/zone/a"})


def review(allows: Callable[[dict[str, str]], bool]) -> Step:
    async def step(request: web.Request) -> web.StreamResponse:
        asked = (await request.json())["spec"]["resourceAttributes"]
        return web.json_response({"status": {"allowed": allows(asked)}}, status=201)

    return step


async def found(
    answer: Step,
    *,
    health: Health | None = None,
    autoscaling: str = "detect",
    status: str = "/".join(STATUS),
    nodes: tuple[Any, ...] = (ON_GKE,),
    policies: object = Policies(),
    namespace: str = "jhub",
    makes_claims: bool = True,
    events: bool = True,
    profiles: list[dict[str, Any]] | None = None,
    **scripts: list[Step],
) -> list[Finding]:
    state = ClusterState()
    for plain in nodes:
        state.put(convert("Node", plain))
    server = ScriptedServer(selfsubjectaccessreviews=[answer] * 100, **scripts)
    async with server.serving() as client:
        hub: Any = SimpleNamespace(
            runtime=SimpleNamespace(client=client, accounts=SimpleNamespace(namespace=namespace)),
            policies=policies,
            spawner=SimpleNamespace(
                namespace="jhub",
                autoscaling=autoscaling,
                autoscaler_status=status,
                storage_pvc_ensure=makes_claims,
                events_enabled=events,
                profile_list=profiles or [],
                group_overrides={},
                apply_user_options={},
            ),
            state=state,
            view=SimpleNamespace(health=lambda: health or Live(0.0)),
        )
        return await rights.check(hub)


def without(resource: str) -> Step:
    return review(lambda asked: asked["resource"] != resource)


def troubles(findings: list[Finding]) -> list[tuple[str, Severity]]:
    return [(it.id, it.severity) for it in findings if it.severity is not Severity.FINE]


async def test_who_has_all_rights_has_no_troubles() -> None:
    assert troubles(await found(review(lambda _: True))) == []


async def test_a_hub_needs_the_right_to_make_claims_if_any_server_gets_one() -> None:
    answer = without("persistentvolumeclaims")
    reads = {it.plural for it in KINDS}

    asked = await found(answer, makes_claims=False)
    needed = await found(answer)
    override = {"kubespawner_override": {"storage_pvc_ensure": True}}
    for_one = await found(answer, makes_claims=False, profiles=[{**CPU, **override}])

    assert "persistentvolumeclaims" in reads  # the verdicts need to read them
    assert "rights-servers" not in {it.id for it in asked}
    for listed in (needed, for_one):
        assert "rights-servers" in {it.id for it in listed}


async def test_a_hub_whose_spawner_reads_no_events_starts_servers_without_them() -> None:
    assert troubles(await found(review(lambda _: True), events=False)) == []
    listed = await found(without("events"), events=False)

    assert troubles(listed) == [("rights-events", Severity.WARNING)]
    (text,) = (it.text for it in listed if it.id == "rights-events")
    assert text.startswith("The hub isn't allowed to list and watch events in the namespace jhub. ")
    assert "a start doesn't end when an autoscaler says that no node comes" in text


async def test_events_that_kubespawner_reads_too_are_missed_once() -> None:
    assert troubles(await found(without("events"))) == [("rights-servers", Severity.ERROR)]


async def test_each_right_to_events_is_asked_for_in_the_namespace_of_the_servers() -> None:
    def allows(asked: dict[str, str]) -> bool:
        rights = ("events", "jhub", "list"), ("events", "", "watch")
        return (asked["resource"], asked["namespace"], asked["verb"]) not in rights

    listed = await found(review(allows), events=False)

    (text,) = (it.text for it in listed if it.id == "rights-events")
    assert "isn't allowed to list events in the namespace jhub" in text


async def test_each_right_that_servers_need_is_asked_for_in_their_own_namespace() -> None:
    listed = await found(review(lambda asked: asked["namespace"] != "jhub"))

    assert troubles(listed) == [("rights-servers", Severity.ERROR)]
    (text,) = (it.text for it in listed if it.id == "rights-servers")
    assert text.startswith(
        "The hub isn't allowed to get pods, list pods, watch pods, create pods, delete pods, "
        "get persistentvolumeclaims, create persistentvolumeclaims, list events, watch events "
        "in the namespace jhub, so "
    )


@pytest.mark.parametrize("verb", ["list", "watch"])
async def test_each_right_that_verdicts_need_is_asked_for_in_all_namespaces(verb) -> None:
    groups = {it.plural: it.api.removeprefix("/apis/").partition("/")[0] for it in KINDS}

    def allows(asked: dict[str, str]) -> bool:
        is_one = asked["group"] == groups.get(asked["resource"])
        return not is_one or (asked["verb"], asked["namespace"]) != (verb, "")

    listed = await found(review(allows))

    assert troubles(listed) == [
        (f"rights-{it.plural}", Severity.ERROR if it.required else Severity.WARNING) for it in KINDS
    ]
    for kind in KINDS:
        (text,) = (it.text for it in listed if it.id == f"rights-{kind.plural}")
        assert text.startswith(f"The hub isn't allowed to {verb} {kind.plural}, so ")


async def test_the_right_to_cluster_autoscaler_s_status_is_asked_for_by_its_name() -> None:
    asked: list[dict[str, str]] = []

    def only_by_name(attributes: dict[str, str]) -> bool:
        asked.append(attributes)
        return attributes["resource"] != "configmaps" or attributes["name"] != ""

    assert troubles(await found(review(only_by_name))) == []
    assert {
        (it["verb"], it["namespace"], it["name"]) for it in asked if it["resource"] == "configmaps"
    } == {(verb, "kube-system", "cluster-autoscaler-status") for verb in ("list", "watch")}


async def test_without_the_right_to_its_status_cluster_autoscaler_s_limits_are_unknown() -> None:
    listed = await found(without("configmaps"))

    assert troubles(listed) == [("rights-cluster-autoscaler", Severity.WARNING)]
    (text,) = (it.text for it in listed if it.id == "rights-cluster-autoscaler")
    assert (
        "isn't allowed to list and watch the ConfigMap cluster-autoscaler-status in kube-system"
        in text
    )


async def test_the_right_to_a_status_in_another_namespace_is_asked_for_there() -> None:
    place = "openshift-machine-api/cluster-autoscaler-status"
    listed = await found(
        review(lambda it: it["namespace"] != "openshift-machine-api"), status=place
    )

    (one,) = (it for it in listed if it.id == "rights-cluster-autoscaler")
    named = "the ConfigMap cluster-autoscaler-status in openshift-machine-api"
    assert named in one.text
    assert one.advice.startswith(GRANT.format(verbs="list and watch", what=named))


ON_OPENSHIFT = node("a", 1)
ON_OPENSHIFT["metadata"]["annotations"] = {
    "machine.openshift.io/machine": "openshift-machine-api/ocp-x7k2p-worker-0-9q4wd"
}


async def test_rights_about_machines_are_missed_where_nodes_are_machines() -> None:
    denied = without("machineautoscalers")

    assert troubles(await found(denied)) == []
    listed = await found(denied, nodes=(ON_OPENSHIFT,))
    assert troubles(listed) == [("rights-openshift", Severity.WARNING)]
    (text,) = (it.text for it in listed if it.id == "rights-openshift")
    assert (
        "isn't allowed to list and watch machineautoscalers, so the hub doesn't know whether"
        in text
    )


PER_USER = Policies((Policy("a", limits=(Limit(Per.USER, Measure(What.GPUS), 1),)),))
PER_SERVER = Policies((Policy("a", limits=(Limit(Per.SERVER, Measure(What.GPUS), 1),)),))


def no_pods_in(namespace: str) -> Step:
    return review(lambda asked: (asked["resource"], asked["namespace"]) != ("pods", namespace))


@pytest.mark.parametrize("policies", [PER_USER, lambda _: {}])
async def test_without_the_right_to_read_the_servers_pods_limits_cannot_be_counted(
    policies,
) -> None:
    listed = await found(no_pods_in("jhub"), policies=policies)

    assert ("rights-policies", Severity.ERROR) in troubles(listed)
    assert (
        "isn't allowed to list and watch pods in the namespace jhub, so it can't count"
        in listed[-1].text
    )


async def test_if_each_user_has_a_namespace_limits_need_the_pods_of_all() -> None:
    listed = await found(no_pods_in(""), policies=PER_USER, namespace="")

    assert troubles(listed)[-1] == ("rights-policies", Severity.ERROR)
    assert "pods in all namespaces" in listed[-1].text
    assert troubles(await found(no_pods_in("jhub"), policies=PER_USER, namespace="")) == [
        ("rights-servers", Severity.ERROR)
    ]


@pytest.mark.parametrize("policies", [Policies(), PER_SERVER])
async def test_what_counts_no_other_server_needs_no_right(policies) -> None:
    listed = await found(no_pods_in("jhub"), policies=policies)

    assert troubles(listed) == [("rights-servers", Severity.ERROR)]


async def test_karpenter_is_known_by_its_api() -> None:
    listed = await found(without("nodeclaims"), **{"karpenter.sh": [page()]})

    assert troubles(listed) == [("rights-karpenter", Severity.WARNING)]


async def test_without_karpenter_its_rights_are_not_missed() -> None:
    api = {"karpenter.sh": [failure(404)]}

    assert troubles(await found(without("nodeclaims"), **api)) == []


async def test_kueue_is_known_by_its_api() -> None:
    listed = await found(without("workloads"), **{"kueue.x-k8s.io": [page()]})

    assert troubles(listed) == [("rights-kueue", Severity.WARNING)]
    (text,) = (it.text for it in listed if it.id == "rights-kueue")
    assert text == (
        "Kueue is installed, but the hub isn't allowed to list and watch workloads, so the hub "
        "doesn't know the places of servers that wait in Kueue's queues."
    )


async def test_without_kueue_its_rights_are_not_missed() -> None:
    assert troubles(await found(without("workloads"))) == []


async def test_where_the_number_of_nodes_is_fixed_autoscalers_are_not_asked_about() -> None:
    assert troubles(await found(without("configmaps"), autoscaling="none")) == []


@pytest.mark.parametrize(
    ("health", "severity"),
    [(Live(0.0), Severity.WARNING), (Forbidden(("nodes",), "no"), Severity.ERROR)],
)
async def test_an_api_server_that_does_not_say_is_not_taken_for_a_no(health, severity) -> None:
    listed = await found(failure(403, "reviews are for others"), health=health)

    assert troubles(listed) == [("rights", severity)]
    assert "doesn't say what the hub may do (HTTP 403" in listed[-1].text
