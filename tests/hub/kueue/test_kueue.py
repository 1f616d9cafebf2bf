"""Servers wait in the queues of the real Kueue, and their owners read what happens."""

import pytest

from tests.hub.configurations import ANSWER_AT_ONCE, T4, t4_nodes
from tests.hub.queues import Queues, end_of, until_told
from tests.hub.streams import following
from tests.waiting import wait_for

ONE, TWO = {"accelerator": "t4"}, {"accelerator": "t4", "gpus": 2}
# With Kueue, the hub's own line stays out of the way.
WITH_LINE = "c.GPUSpawner.queue = True\n"
LOOK_OFTEN = "c.Spawner.poll_interval = 1\n"


@pytest.fixture
def kueue(cluster, queueing):
    running = queueing(cluster)
    yield running
    running.remove_objects()


@pytest.fixture
def hub(kueue, kept_hub, add_nodes):
    """A hub with four GPUs on two nodes, beside Kueue."""
    kueue.process.check()
    add_nodes(t4_nodes(2, 2))
    return kept_hub(T4 + ANSWER_AT_ONCE + WITH_LINE + LOOK_OFTEN)


@pytest.fixture
def queues(cluster, hub):
    return Queues(cluster, hub.pods.namespace)


def let_bob_wait_for_alice(hub, queues):
    """Let Alice's server have the only GPU of the team's quota, and Bob's ask for it."""
    queues.add("team-a", 1)
    queues.lead("team-a")
    hub.start_until_ready("alice", ONE)
    hub.start("bob", ONE)


def test_who_comes_after_the_quota_is_used_reads_the_place_and_starts_in_turn(hub, queues):
    queues.add("team-a", 1)
    queues.lead("team-a")
    hub.start_until_ready("alice", ONE)

    assert hub.start("bob", {**ONE, "wait": True}).status_code == 202
    uses = "team-a uses 1 of its 1 GPU."
    until_told(hub, "bob", f"Your server is next in the queue default. {uses}")
    assert hub.start("carol", ONE).status_code == 202
    ahead = "Your server waits in the queue default: 1 other is ahead of it."
    until_told(hub, "carol", f"{ahead} {uses}")

    hub.stop("alice")
    hub.until_ready("bob")
    hub.stop("bob")
    hub.until_ready("carol")


THESIS = {
    "display_name": "Thesis",
    "slug": "thesis",
    "kubespawner_override": {
        "node_selector": {"gpu": "t4"},
        "extra_resource_limits": {"nvidia.com/gpu": "1"},
        "extra_labels": {"kueue.x-k8s.io/queue-name": "thesis"},
    },
}


def test_a_profile_can_name_its_own_queue(hub, queues):
    profiles = f"c.KubeSpawner.profile_list = [{THESIS!r}]"
    hub.reconfigure("c.GPUSpawner.accelerators = {}", profiles)
    queues.add("team-a", 8)
    queues.lead("team-a")
    queues.add("students", 1)
    queues.lead("students", "thesis")
    hub.start_until_ready("alice", {"profile": "thesis"})

    hub.start("bob", {"profile": "thesis"})

    uses = "students uses 1 of its 1 GPU."
    until_told(hub, "bob", f"Your server is next in the queue thesis. {uses}")


def test_a_server_that_asks_for_more_than_the_queue_could_ever_give_is_refused_at_once(hub, queues):
    queues.add("team-a", 1)
    queues.lead("team-a")

    # Elsewhere, a start that Kueue needs a moment for is answered before that.
    hub.reconfigure("c.JupyterHub.tornado_settings = {}")
    answer = hub.start("alice", TWO)

    assert answer.status_code == 409
    assert answer.json()["message"] == (
        "Your server needs 2 GPUs, but the queue default can give 1 at most. "
        "You can have 1 × Tesla T4, or start without a GPU."
    )
    assert not hub.pods.names()


def test_a_server_that_kueue_itself_says_it_can_never_admit_ends_with_its_words(hub, queues):
    queues.add("team-a", 1, {"other": 8})
    queues.lead("team-a")

    hub.start("alice", TWO)

    assert end_of(hub, "alice") == (
        "Spawn failed: The cluster's queue for your server can never give it what it needs. "
        "Please choose something else, or ask your administrator."
    )
    assert "insufficient quota for nvidia.com/gpu in flavor t4" in hub.log


def test_a_server_that_kueue_considers_no_more_ends_instead_of_being_the_next_for_ever(hub, queues):
    let_bob_wait_for_alice(hub, queues)
    until_told(hub, "bob", "Your server is next in the queue default. team-a uses 1 of its 1 GPU.")

    queues.deactivate("jupyter-bob")

    assert end_of(hub, "bob") == (
        "Spawn failed: The cluster's queue has ended your server. "
        "Please start your server again: it waits in the queue until its turn comes."
    )
    assert "The workload is deactivated" in hub.log
    wait_for(lambda: "jupyter-bob" not in hub.pods.names())


def test_a_server_that_kueue_admits_waits_for_room_and_is_refused_only_if_none_comes(hub, queues):
    hub.reconfigure("c.GPUSpawner.scheduling_timeout = 20")
    queues.add("team-a", 8)
    queues.lead("team-a")
    for user in ("alice", "bob"):
        hub.start_until_ready(user, TWO)

    hub.start("carol", ONE)
    assert end_of(hub, "carol") == (
        "Spawn failed: No Tesla T4 is free right now: all 4 are in use. "
        "You can start without a GPU."
    )

    hub.events_end("carol")
    hub.start("carol", ONE)
    wait_for(lambda: "jupyter-carol" in hub.pods.names())
    hub.stop("alice")
    hub.until_ready("carol")


def test_a_team_borrows_what_another_one_doesn_t_use_until_that_is_used_too(hub, queues):
    queues.add("team-a", 1, cohortName="all")
    queues.add("team-b", 1, cohortName="all")
    queues.lead("team-a")
    queues.lead("team-b", "others")
    hub.start_until_ready("alice", ONE)
    hub.start_until_ready("bob", ONE)

    hub.start("carol", ONE)

    borrowed = "team-a uses 2 GPUs, and its own quota is 1."
    until_told(hub, "carol", f"Your server is next in the queue default. {borrowed}")
    hub.stop("bob")
    hub.until_ready("carol")


def test_whose_borrowed_gpu_is_wanted_back_reads_so(hub, queues):
    queues.add("team-a", 1, cohortName="all")
    queues.add("team-b", 1, cohortName="all", preemption={"reclaimWithinCohort": "Any"})
    queues.lead("team-a")
    queues.lead("team-b", "others")
    hub.start_until_ready("alice", ONE)
    hub.start_until_ready("bob", ONE)

    queues.run_job("job", 1, "others")

    wait_for(lambda: len(hub.pods.names()) == 2)
    loser = next(it for it in ("alice", "bob") if f"jupyter-{it}" not in hub.pods.names())
    wait_for(lambda: not hub.server(loser))
    page = hub.person(loser).open("/hub/spawn").text
    assert (
        "Your last server ended because its place was borrowed, and its owners needed it back."
        in page
    )


def test_a_server_that_is_preempted_while_it_starts_says_so_and_can_wait_again(hub, queues):
    hub.reconfigure('c.KubeSpawner.cmd = ["sleep", "600"]')
    queues.add("team-a", 1, preemption={"withinClusterQueue": "LowerPriority"})
    queues.lead("team-a")
    hub.start("alice", ONE)
    until_told(hub, "alice", "Your server is running and will answer in a moment.")

    queues.run_job("urgent", 1, "default", priority=1000)

    assert end_of(hub, "alice") == (
        "Spawn failed: The cluster's queue gave your server's place to one with a higher "
        "priority. Please start your server again: it waits in the queue until its turn comes."
    )
    hub.events_end("alice")
    hub.start("alice", ONE)
    uses = "team-a uses 1 of its 1 GPU."
    until_told(hub, "alice", f"Your server is next in the queue default. {uses}")


def test_an_open_form_follows_who_waits_in_its_queue_and_whether_that_is_stopped(hub, queues):
    queues.add("team-a", 1)
    queues.lead("team-a")
    hub.start_until_ready("bob", ONE)
    decides = "The queue default decides when your server starts."

    with following(hub.person("alice")) as form:

        def until_form_says(text):
            form.until(lambda it: it["queue"]["message"] == text)

        until_form_says(f"{decides} Nobody is waiting there right now.")
        hub.start("carol", ONE)
        until_form_says(f"{decides} 1 is waiting there already.")
        queues.change("team-a", stopPolicy="Hold")
        until_form_says("The queue default is stopped right now.")


def test_a_stopped_queue_says_so_to_those_in_it_and_to_those_who_come(hub, queues):
    let_bob_wait_for_alice(hub, queues)
    wait_for(lambda: queues.is_gated("jupyter-bob"))

    queues.change("team-a", stopPolicy="HoldAndDrain")

    kept = "The queue is stopped right now; your server keeps its place."
    until_told(hub, "bob", f"Your server is next in the queue default. {kept}")
    wait_for(lambda: not hub.server("alice"))
    page = hub.person("alice").open("/hub/spawn").text
    assert "Your last server ended because an administrator has stopped its queue." in page
    hub.start("carol", ONE)
    assert end_of(hub, "carol") == (
        "Spawn failed: The queue default is stopped right now. "
        "Please try again later, or tell your administrator."
    )

    queues.change("team-a", stopPolicy="None")
    hub.until_ready("bob")


def test_while_kueue_is_away_those_in_line_stay_and_others_read_that_checks_don_t_respond(
    hub, queues, kueue
):
    let_bob_wait_for_alice(hub, queues)
    uses = "team-a uses 1 of its 1 GPU."
    until_told(hub, "bob", f"Your server is next in the queue default. {uses}")

    kueue.stop()
    hub.expect_errors("Failed for {")  # so KubeSpawner writes of a pod that isn't created
    hub.start("carol", ONE)
    said = end_of(hub, "carol")
    hub.api("DELETE", "/users/alice/server")
    wait_for(lambda: hub.pods.of("alice")["metadata"].get("deletionTimestamp"))
    assert hub.server("alice")["pending"] == "stop"
    kueue.start_again()

    assert said == (
        "Spawn failed: The cluster can't accept servers right now: one of its admission checks "
        "isn't responding. Please try again later, or tell your administrator."
    )
    hub.until_ready("bob")
    wait_for(lambda: not hub.server("alice"))


def test_without_kueue_s_webhooks_a_server_starts_as_any_other(hub, queues, kueue):
    queues.add("team-a", 0)
    queues.lead("team-a")
    with kueue.without_webhooks():
        hub.start_until_ready("alice", ONE)
