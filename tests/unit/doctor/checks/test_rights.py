"""What the doctor says of rights, by an API server's own word."""

import asyncio
from types import SimpleNamespace

import pytest
from aiohttp import web

from gpuspawner.cluster.autoscaler_objects import STATUS
from gpuspawner.cluster.client import RequestError
from gpuspawner.cluster.health import Forbidden, Live
from gpuspawner.cluster.kinds import KINDS
from gpuspawner.doctor.checks import rights
from gpuspawner.kube.objects import convert
from gpuspawner.messages.administrators import GRANT, Severity
from gpuspawner.policies.policies import Limit, Measure, Per, Policies, Policy, What
from gpuspawner.scheduling import ClusterState
from tests.unit.makers.profile_lists import CPU
from tests.unit.makers.scripted import ScriptedServer, failure, page
from tests.unit.makers.surveyed import node

STATUS_PLACE, NO_POLICIES = "/".join(STATUS), Policies()
ON_GKE = node("a", 1, spec={"providerID": "gce://project/zone/a"})
ON_OPENSHIFT = node("a", 1)
ON_OPENSHIFT["metadata"]["annotations"] = {
    "machine.openshift.io/machine": "openshift-machine-api/ocp-x7k2p-worker-0-9q4wd"
}


def review(allows):
    async def step(request):
        asked = (await request.json())["spec"]["resourceAttributes"]
        return web.json_response({"status": {"allowed": allows(asked)}}, status=201)

    return step


async def found(
    answer,
    *,
    health=None,
    autoscaling="detect",
    status=STATUS_PLACE,
    nodes=(ON_GKE,),
    policies=NO_POLICIES,
    namespace="jhub",
    makes_claims=True,
    events=True,
    profiles=None,
    **scripts,
):
    state = ClusterState()
    for plain in nodes:
        state.put(convert("Node", plain))
    server = ScriptedServer(selfsubjectaccessreviews=[answer] * 100, **scripts)
    async with server.serving() as client:
        hub = SimpleNamespace(
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


def without(resource):
    return review(lambda asked: asked["resource"] != resource)


def troubles(findings):
    return [(it.id, it.severity) for it in findings if it.severity is not Severity.FINE]


OWN_CLAIM = {**CPU, "kubespawner_override": {"storage_pvc_ensure": True}}


@pytest.mark.parametrize(
    ("hub", "is_needed"),
    [
        ({}, True),
        ({"makes_claims": False, "profiles": [OWN_CLAIM]}, True),
        ({"makes_claims": False}, False),
    ],
)
async def test_a_hub_needs_the_right_to_make_claims_if_any_server_gets_one(hub, is_needed):
    listed = await found(without("persistentvolumeclaims"), **hub)

    assert ("rights-servers" in {it.id for it in listed}) is is_needed


LACKING = {
    "rights-servers": (
        "events", {}, Severity.ERROR, "isn't allowed to list events, watch events in"),
    "rights-events": (
        "events", {"events": False}, Severity.WARNING,
        "isn't allowed to list and watch events in the namespace jhub. So a start doesn't end"),
    "rights-cluster-autoscaler": (
        "configmaps", {}, Severity.WARNING,
        "isn't allowed to list and watch the ConfigMap cluster-autoscaler-status in kube-system"),
    "rights-openshift": (
        "machineautoscalers", {"nodes": (ON_OPENSHIFT,)}, Severity.WARNING,
        "isn't allowed to list and watch machineautoscalers, so the hub doesn't know whether"),
    "rights-karpenter": (
        "nodeclaims", {"karpenter.sh": [page()]}, Severity.WARNING, "Karpenter is installed, but"),
    "rights-kueue": (
        "workloads", {"kueue.x-k8s.io": [page()]}, Severity.WARNING,
        "list and watch workloads, so the hub doesn't know the places of servers that wait in"),
}  # fmt: skip


@pytest.mark.parametrize("id_", LACKING)
async def test_a_right_that_the_hub_lacks_is_named_once_with_what_comes_of_it(id_):
    resource, hub, severity, said = LACKING[id_]

    listed = await found(without(resource), **hub)

    assert troubles(listed) == [(id_, severity)]
    assert said in next(it.text for it in listed if it.id == id_)


@pytest.mark.parametrize(
    ("resource", "hub"),
    [
        ("", {}),
        ("", {"events": False}),
        ("machineautoscalers", {}),
        ("nodeclaims", {"karpenter.sh": [failure(404)]}),
        ("workloads", {}),
        ("configmaps", {"autoscaling": "none"}),
    ],
    ids=["all", "all events", "not on OpenShift", "no Karpenter", "no Kueue", "no autoscaler"],
)
async def test_a_right_that_nothing_needs_is_not_missed(resource, hub):
    assert troubles(await found(without(resource), **hub)) == []


async def test_each_right_to_events_is_asked_for_in_the_namespace_of_the_servers():
    def allows(asked):
        rights = ("events", "jhub", "list"), ("events", "", "watch")
        return (asked["resource"], asked["namespace"], asked["verb"]) not in rights

    listed = await found(review(allows), events=False)

    (text,) = (it.text for it in listed if it.id == "rights-events")
    assert "isn't allowed to list events in the namespace jhub" in text


async def test_each_right_that_servers_need_is_asked_for_in_their_own_namespace():
    listed = await found(review(lambda asked: asked["namespace"] != "jhub"))

    assert troubles(listed) == [("rights-servers", Severity.ERROR)]
    (text,) = (it.text for it in listed if it.id == "rights-servers")
    assert text.startswith(
        "The hub isn't allowed to get pods, list pods, watch pods, create pods, delete pods, "
        "get persistentvolumeclaims, create persistentvolumeclaims, list events, watch events "
        "in the namespace jhub, so "
    )


@pytest.mark.parametrize("verb", ["list", "watch"])
async def test_each_right_that_verdicts_need_is_asked_for_in_all_namespaces(verb):
    groups = {it.plural: it.api.removeprefix("/apis/").partition("/")[0] for it in KINDS}

    def allows(asked):
        is_one = asked["group"] == groups.get(asked["resource"])
        return not is_one or (asked["verb"], asked["namespace"]) != (verb, "")

    listed = await found(review(allows))

    assert troubles(listed) == [
        (f"rights-{it.plural}", Severity.ERROR if it.required else Severity.WARNING) for it in KINDS
    ]
    for kind in KINDS:
        (text,) = (it.text for it in listed if it.id == f"rights-{kind.plural}")
        assert text.startswith(f"The hub isn't allowed to {verb} {kind.plural}, so ")


async def test_the_right_to_cluster_autoscaler_s_status_is_asked_for_by_its_name():
    asked = []

    def only_by_name(attributes):
        asked.append(attributes)
        return attributes["resource"] != "configmaps" or attributes["name"] != ""

    assert troubles(await found(review(only_by_name))) == []
    assert {
        (it["verb"], it["namespace"], it["name"]) for it in asked if it["resource"] == "configmaps"
    } == {(verb, "kube-system", "cluster-autoscaler-status") for verb in ("list", "watch")}


async def test_the_right_to_a_status_in_another_namespace_is_asked_for_there():
    place = "openshift-machine-api/cluster-autoscaler-status"
    listed = await found(
        review(lambda it: it["namespace"] != "openshift-machine-api"), status=place
    )

    (one,) = (it for it in listed if it.id == "rights-cluster-autoscaler")
    named = "the ConfigMap cluster-autoscaler-status in openshift-machine-api"
    assert named in one.text
    assert one.advice.startswith(GRANT.format(verbs="list and watch", what=named))


PER_USER = Policies((Policy("a", limits=(Limit(Per.USER, Measure(What.GPUS), 1),)),))
PER_SERVER = Policies((Policy("a", limits=(Limit(Per.SERVER, Measure(What.GPUS), 1),)),))


def no_pods_in(namespace):
    return review(lambda asked: (asked["resource"], asked["namespace"]) != ("pods", namespace))


@pytest.mark.parametrize("policies", [PER_USER, lambda _: {}])
async def test_without_the_right_to_read_the_servers_pods_limits_cannot_be_counted(policies):
    listed = await found(no_pods_in("jhub"), policies=policies)

    assert ("rights-policies", Severity.ERROR) in troubles(listed)
    assert (
        "isn't allowed to list and watch pods in the namespace jhub, so it can't count"
        in listed[-1].text
    )


async def test_if_each_user_has_a_namespace_limits_need_the_pods_of_all():
    listed = await found(no_pods_in(""), policies=PER_USER, namespace="")

    assert troubles(listed)[-1] == ("rights-policies", Severity.ERROR)
    assert "pods in all namespaces" in listed[-1].text
    assert troubles(await found(no_pods_in("jhub"), policies=PER_USER, namespace="")) == [
        ("rights-servers", Severity.ERROR)
    ]


@pytest.mark.parametrize("policies", [Policies(), PER_SERVER])
async def test_what_counts_no_other_server_needs_no_right(policies):
    listed = await found(no_pods_in("jhub"), policies=policies)

    assert troubles(listed) == [("rights-servers", Severity.ERROR)]


@pytest.mark.parametrize(
    ("health", "severity"),
    [(Live(0.0), Severity.WARNING), (Forbidden(("nodes",), "no"), Severity.ERROR)],
)
async def test_an_api_server_that_does_not_say_is_not_taken_for_a_no(health, severity):
    listed = await found(failure(403, "reviews are for others"), health=health)

    assert troubles(listed) == [("rights", severity)]
    assert "doesn't say what the hub may do (HTTP 403" in listed[-1].text


class Busy:
    """A client of an API server that refuses the first question and never answers the others."""

    def __init__(self):
        self.asked = 0

    async def post(self, *_):
        self.asked += 1
        if self.asked > 1:
            await asyncio.Event().wait()
        return 500, b""


async def test_after_an_error_no_question_goes_on():
    client = Busy()

    with pytest.raises(RequestError, match="HTTP 500 for a SelfSubjectAccessReview"):
        await rights.denied(client, [rights.Right("list", "pods"), rights.Right("list", "nodes")])

    assert client.asked == 2
    assert asyncio.all_tasks() == {asyncio.current_task()}
