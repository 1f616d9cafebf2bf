"""Which open forms share an answer: those that surely show the same, and no others."""

import asyncio

import pytest

from gpuspawner import language
from gpuspawner.web.open_form import opened
from tests.unit.makers.courses import NODES, Course
from tests.unit.makers.hubs import A100, StillHub, named
from tests.unit.makers.policy_pods import GPU
from tests.unit.makers.profile_clusters import ONE_TAKEN, TAKEN_TOO, TWO_GPUS
from tests.unit.makers.profile_lists import CPU
from tests.unit.makers.profile_lists import GPU as GPU_PROFILE
from tests.unit.makers.worlds import NAMESPACE, node, pod

HOME = {
    "volumes": [{"name": "home-{username}", "persistentVolumeClaim": {"claimName": "{username}"}}],
    "extra_labels": {"owner": "{username}"},
    "storage_pvc_ensure": True,
    "storage_capacity": "1Gi",
}
ACCELERATORS = {"accelerators": {"a100": A100}}
PROFILES = {"profile_list": [CPU, GPU_PROFILE]}
EACH = pytest.mark.parametrize("offers", [ACCELERATORS, PROFILES], ids=["accelerators", "profiles"])


async def form_of(spawner, name="", server=""):
    form = await opened(named(spawner, name or spawner.user.name).gpuspawner_gates.sources, server)
    assert form is not None
    return form


async def ann_and_bob(hub, **traits):
    return [await form_of(hub.spawner(**traits), name) for name in ("ann", "bob")]


@pytest.fixture
def course(monkeypatch):
    return Course(hub_with(monkeypatch, *NODES))


@pytest.fixture
def hub(monkeypatch):
    return hub_with(monkeypatch, TWO_GPUS)


def hub_with(monkeypatch, *objects):
    hub = StillHub(monkeypatch, *objects)
    for kind in ("PersistentVolumeClaim", "PersistentVolume", "StorageClass"):
        hub.view.state.mark_known(kind)
    return hub


@EACH
async def test_users_whose_pods_differ_only_in_names_ask_the_same(hub, offers):
    ann, bob = await ann_and_bob(hub, **offers, **HOME)

    assert ann.question() == bob.question()
    answers = [await form.answer() for form in (ann, bob)]
    assert answers[0].found == answers[1].found
    assert answers[0].for_all


async def test_users_with_namespaces_of_their_own_ask_the_same_about_accelerators(hub):
    ann, bob = [
        await form_of(hub.spawner(**ACCELERATORS, namespace=f"of-{name}"), name)
        for name in ("ann", "bob")
    ]

    assert ann.question() == bob.question()
    hub.view.put("Pod", pod("lonely", 0, on="a", affinity=about_others_in("of-ann")))
    assert ann.question() != bob.question()


QUEUED = {**ACCELERATORS, "kueue_queue": "gpus"}
SMALL = {**CPU, "kubespawner_override": {"mem_guarantee": "1G"}}
ELSEWHERE = {"node_selector": {"zone": "b"}}


@pytest.mark.parametrize(
    ("anns", "bobs"),
    [
        ({**QUEUED, "namespace": "of-ann"}, {**QUEUED, "namespace": "of-bob"}),
        (QUEUED, {**QUEUED, "kueue_queue": "of-bob"}),
        (ACCELERATORS, {**ACCELERATORS, **ELSEWHERE}),
        (PROFILES, {**PROFILES, **ELSEWHERE}),
        (
            {"profile_list": [SMALL, GPU_PROFILE], "mem_guarantee": "100T"},
            {"profile_list": [SMALL, GPU_PROFILE], "mem_guarantee": "1G"},
        ),
    ],
    ids=[
        "queues-of-namespaces",
        "queues",
        "nodes",
        "nodes-of-profiles",
        "default-profile-hides-it",
    ],
)
async def test_users_whose_pods_differ_ask_for_themselves(hub, anns, bobs):
    ann, bob = await form_of(hub.spawner(**anns), "ann"), await form_of(hub.spawner(**bobs), "ann")

    assert ann.question() != bob.question()


async def test_users_with_namespaces_ask_for_themselves_if_a_hook_may_have_rules_about_these(hub):
    """A form expects its pods to be as the hook has last made them."""
    own = {**ACCELERATORS, "modify_pod_hook": alone}
    ann, bob = [
        await form_of(hub.spawner(**own, namespace=f"of-{name}"), name) for name in ("ann", "bob")
    ]
    source = hub.spawner(**own).gpuspawner_gates.sources.current
    for options in ({}, {"accelerator": "a100"}):
        made = (await source.resolve(options)).proposal
        sent = {**made.pod, "spec": {**made.pod["spec"], "affinity": APART}}
        source.later.learn(made.kind, made.made, sent, made.chosen)
    other = pod("other", 0, on="a")
    other["metadata"]["namespace"] = "of-ann"

    hub.view.put("Pod", other)

    assert (await ann.answer()).found != (await bob.answer()).found
    assert ann.question() != bob.question()


def of_a_user(spawner, made):
    if spawner.user.name == "ann":
        made.spec.scheduler_name = "of-ann"
    return made


@EACH
async def test_users_ask_for_themselves_if_a_hook_may_treat_them_differently(hub, offers):
    ann, bob = await ann_and_bob(hub, **offers, modify_pod_hook=of_a_user)

    assert ann.question() != bob.question()


BESIDE = {"labelSelector": {}, "topologyKey": "gpu"}
APART = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [BESIDE]}}


def alone(_, pod):
    """Let no server be beside another pod of its namespace."""
    pod.spec.affinity = APART
    return pod


def about_others_in(namespace):
    """Return an anti-affinity to each pod of a namespace."""
    term = {"labelSelector": {}, "namespaces": [namespace], "topologyKey": "gpu"}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


@EACH
async def test_users_do_not_ask_the_same_while_pods_select_each_other_by_labels(hub, offers):
    ann, bob = await ann_and_bob(hub, **offers, **HOME, namespace=NAMESPACE)
    selector = {"matchLabels": {"owner": "ann"}}
    term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    hub.view.put("Pod", pod("lonely", 0, on="a", affinity=apart))

    assert ann.question() != bob.question()
    hub.view.remove_pod("lonely")
    assert ann.question() == bob.question()


@EACH
async def test_a_form_in_another_language_does_not_share_its_words(hub, monkeypatch, offers):
    ann = await form_of(hub.spawner(**offers), "ann")
    monkeypatch.setattr(language, "_known", lambda: ("de",))
    monkeypatch.setattr(language, "_catalogue", lambda tag: (tag, language.NullTranslations()))
    language.set_locale("de")
    bob = await form_of(hub.spawner(**offers), "bob")
    language.set_locale("en")

    assert ann.question() != bob.question()


async def test_a_form_of_profiles_whose_home_can_be_reached_from_elsewhere_is_alone(hub):
    ann, bob = await ann_and_bob(hub, **PROFILES, **HOME)
    assert ann.question() == bob.question()
    namespace = hub.spawner(**PROFILES).namespace
    volume = {"accessModes": ["ReadWriteOnce"], "volumeName": "disk"}
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["far"]}]}
    affinity = {"required": {"nodeSelectorTerms": [term]}}
    hub.view.put(
        "PersistentVolume", {"metadata": {"name": "disk"}, "spec": {"nodeAffinity": affinity}}
    )
    named_ann = {"name": "ann", "namespace": namespace}
    hub.view.put("PersistentVolumeClaim", {"metadata": named_ann, "spec": volume})

    assert ann.question() != bob.question()


async def test_a_form_of_profiles_whose_user_has_an_older_pod_is_alone(hub):
    ann, bob = await ann_and_bob(hub, **PROFILES)
    older = pod("jupyter-ann", 1, on="a")
    older["metadata"]["namespace"] = hub.spawner(**PROFILES).namespace
    hub.view.put("Pod", older)

    assert ann.question() != bob.question()


async def test_what_a_function_in_the_list_gives_one_user_is_shown_to_no_other(hub):
    gpu = {**GPU_PROFILE, "kubespawner_override": {"node_selector": lambda _: {"gpu": "a100"}}}
    form = await form_of(hub.spawner(profile_list=[CPU, gpu]), "ann")

    assert not (await form.answer()).for_all


async def test_what_admission_does_to_one_user_s_pod_is_shown_to_no_other(monkeypatch):
    hub = hub_with(monkeypatch, TWO_GPUS, ONE_TAKEN, TAKEN_TOO)
    hub.admission.answer = lambda sent: sent
    form = await form_of(hub.spawner(**PROFILES), "ann")

    answer = await form.answer()

    assert hub.admission.asked
    assert not answer.for_all


async def test_what_limits_leave_to_one_user_is_shown_to_no_other(course):
    spawner = course.spawner({"two": {"gpus_per_user": {GPU: 2}}})
    own = await form_of(spawner)
    before = own.question()
    other = await form_of(spawner, server="other")
    assert own.question() == other.question()

    course.put(spawner, "alice", "train", 1)
    assert own.question() != before
    assert (await own.answer()).found["accelerators"][0]["left"] == 1
    course.put(spawner, "alice", "demo", 1)
    own.question()
    assert (await own.answer()).found["accelerators"][0]["state"] == "limited"


async def test_another_user_s_servers_do_not_change_the_question_of_a_user(course):
    course.database.user("bob")
    spawner = course.spawner({"two": {"gpus_per_user": {GPU: 2}}})
    form = await form_of(spawner)
    before = form.question()

    course.put(spawner, "bob", "train", 1)

    assert form.question() == before


async def test_another_user_s_servers_change_what_a_group_s_limit_leaves(course):
    course.database.user("bob", "course")
    spawner = course.spawner({"ours": {"groups": ["course"], "gpus_per_group": {GPU: 2}}})
    form = await form_of(spawner)

    course.put(spawner, "bob", "train", 1)

    form.question()
    assert (await form.answer()).found["accelerators"][0]["left"] == 1


async def test_other_policies_are_found_out_when_the_form_is_renewed(course):
    given = [{}]
    spawner = course.spawner(lambda _: given[0])
    form = await form_of(spawner)
    before = form.question()
    given[0] = {"none": {"gpus_per_user": {GPU: 1}}}

    assert form.question() == before
    assert form.may_change
    await form.renew()
    assert form.question() != before


async def test_nothing_of_policies_is_read_again_as_long_as_nothing_changes(course):
    spawner = course.spawner({"two": {"gpus_per_user": {GPU: 2}}})
    form = await form_of(spawner)
    token, entitlement = form._token(), form._entitlement

    course.hub.view.put("Node", node("c", 1))

    assert form._token() is token
    assert form._entitlement is entitlement


async def test_lists_of_functions_are_never_taken_for_each_other(hub):
    """Each owner's function returns a list of its own; the lists of closed forms are freed."""
    questions = []
    for number in range(100):
        own = [{**CPU, "display_name": f"of {number}"}, GPU_PROFILE]
        form = await form_of(hub.spawner(profile_list=lambda _, own=own: own), f"user-{number}")
        questions.append(form.question())

    assert len(set(questions)) == 100


async def test_what_a_start_loads_into_a_spawner_is_not_shown_to_others(hub):
    starting = hub.spawner(**PROFILES)
    ann, bob = await form_of(starting, "ann"), await form_of(hub.spawner(**PROFILES), "bob")
    assert ann.question() == bob.question()

    starting.node_selector = {"gpu": "another"}

    answers = [await form.answer() for form in (ann, bob)]
    assert answers[0].found != answers[1].found
    assert not answers[0].for_all
    assert answers[1].for_all


async def test_a_start_that_loads_a_profile_changes_nothing_on_forms_that_are_open(hub):
    spawner = hub.spawner(**PROFILES)
    form = await form_of(spawner)
    before = (await form.answer()).found
    started = asyncio.Future()
    source = spawner.gpuspawner_gates.sources.current

    source.begin()
    spawner.user_options = {"profile": "gpu"}
    await spawner.load_user_options()
    assert spawner.extra_resource_limits == {"nvidia.com/gpu": "1"}
    during = (await form.answer()).found
    started.set_result(None)
    source.end(started)

    assert during == (await form.answer()).found == before
