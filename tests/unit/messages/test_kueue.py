"""What people read of Kueue's queues."""

from contextvars import copy_context

import pytest

from gpuspawner.language import set_locale
from gpuspawner.messages import preview, refusal
from gpuspawner.messages.administrators import explain_refusal
from gpuspawner.messages.kueue import explain, in_queue, why
from gpuspawner.offers.grant import Grant
from gpuspawner.preflight.decision import InQueue, Reason, Refuse, Start, UnknownRules
from gpuspawner.preflight.kueue import Closed, Never, PlaceInQueue, WhyClosed

GPU = "nvidia.com/gpu"


PLACES = {
    "Your server waits in the queue gpus.": PlaceInQueue("gpus", "a", None),
    (
        "Your server waits in the queue gpus: 2 others are ahead of it. "
        "team-a uses 6 of its 8 GPUs."
    ): PlaceInQueue("gpus", "team-a", 2, GPU, 6, 8),
    (
        "Your server is next in the queue gpus. team-a uses 1 of its 8 GPUs. "
        "Others have borrowed the rest."
    ): PlaceInQueue("gpus", "team-a", 0, GPU, 1, 8, is_lent=True),
    (
        "Your server waits in the queue gpus: 1 other is ahead of it. "
        "team-a uses 9 GPUs, and its own quota is 8."
    ): PlaceInQueue("gpus", "team-a", 1, GPU, 9, 8),
    (
        "Your server is next in the queue gpus. team-a uses 8 GiB of its 16 GiB of memory."
    ): PlaceInQueue("gpus", "team-a", 0, "memory", 2**33, 2**34),
    (
        "Your server waits in the queue gpus: 1 other is ahead of it. "
        "The queue is stopped right now; your server keeps its place."
    ): PlaceInQueue("gpus", "team-a", 1, GPU, 8, 8, is_stopped=True),
}


@pytest.mark.parametrize(("said", "line"), PLACES.items())
def test_a_place_is_told_with_what_is_in_use(said, line):
    assert in_queue(line).text == said


@pytest.mark.parametrize(
    ("ahead", "said"),
    [
        (None, ""),
        (0, " Nobody is waiting there right now."),
        (1, " 1 is waiting there already."),
        (3, " 3 are waiting there already."),
    ],
)
def test_the_form_says_who_decides_and_how_many_wait(ahead, said):
    in_queue = InQueue(PlaceInQueue("gpus", "team-a", ahead), Start(Grant()))
    for notes in ((in_queue,), (UnknownRules(("?",)), in_queue)):
        told = preview(Start(Grant(), notes)).text

        assert told == f"The queue gpus decides when your server starts.{said}"


@pytest.mark.parametrize(
    ("no", "said", "for_administrators"),
    [
        (
            Never("gpus", GPU, 4, 2),
            (
                "Your server needs 4 GPUs, but the queue gpus can give 2 at most. "
                "Please choose something else, or ask your administrator."
            ),
            "the LocalQueue gpus could never give 4 × nvidia.com/gpu, but at most 2",
        ),
        (
            Never("gpus", GPU, 1, 0),
            (
                "Your server needs 1 GPU, but the queue gpus has none for it. "
                "Please choose something else, or ask your administrator."
            ),
            "the LocalQueue gpus could never give 1 × nvidia.com/gpu, but at most 0",
        ),
        (
            Never("gpus", "memory", 64 * 2**30, 32 * 2**30),
            (
                "Your server needs 64 GiB of memory, but the queue gpus can give 32 GiB at most. "
                "Please choose something else, or ask your administrator."
            ),
            "the LocalQueue gpus could never give 64 GiB of memory, but at most 32 GiB",
        ),
        (
            Closed("gpus", WhyClosed.NO_QUEUE),
            (
                "The cluster has no queue gpus for your server. "
                "Please tell your administrator. The hub's log has the details."
            ),
            "there is no LocalQueue gpus in the pod's namespace",
        ),
        (
            Closed("gpus", WhyClosed.NO_POOL),
            (
                "The queue gpus has no quota to give. "
                "Please tell your administrator. The hub's log has the details."
            ),
            "the ClusterQueue of the LocalQueue gpus doesn't exist",
        ),
        (
            Closed("gpus", WhyClosed.STOPPED),
            (
                "The queue gpus is stopped right now. "
                "Please try again later, or tell your administrator."
            ),
            "the LocalQueue gpus, or its ClusterQueue, has a stopPolicy",
        ),
        (
            Closed("gpus", WhyClosed.INACTIVE, "Can't admit new workloads:\nno flavor t4"),
            (
                "The queue gpus can't take servers right now. "
                "Please try again later, or tell your administrator."
            ),
            "isn't active: Can't admit new workloads: no flavor t4",
        ),
    ],
)
def test_a_queue_s_no_says_why(no, said, for_administrators):
    refused = Refuse(Grant(), Reason.QUOTA, queue=no)

    assert refusal(refused).text == said
    assert for_administrators in explain_refusal(refused)


def test_a_log_has_amounts_in_english_whatever_the_user_speaks():
    no = Never("gpus", "cpu", asked=8000, most=500)

    said = copy_context().run(lambda: (set_locale("zh-CN"), why(no), explain(no)))

    assert "8 核" in str(said[1])
    assert said[2] == "the LocalQueue gpus could never give 8 cores of CPU, but at most 0.5 cores"


def test_a_name_is_only_quoted():
    said = in_queue(PlaceInQueue("<b>\n", "<script>", 0, GPU, 1, 2))

    assert "<script>" not in said.html
    assert "\n" not in said.text
