"""What is told of a start, in sentences."""

import pytest

from gpuspawner.messages import failure, hitch, step, still
from gpuspawner.messages.launching import why_unscheduled
from gpuspawner.troubles.giving_up import GivenUp, StartPhase
from gpuspawner.troubles.images import Pulled, Pulling
from gpuspawner.troubles.steps import Stage, Step
from gpuspawner.troubles.trouble import About, Exit, Kind, Trouble


@pytest.mark.parametrize("of", Step)
@pytest.mark.parametrize("usual", [None, 20.0, 400.0])
def test_each_step_is_one_or_two_sentences(of, usual):
    text = step(Stage(of, (0, 0)), usual).text
    assert text.endswith(".")
    assert text.count(".") <= 2


def test_a_step_says_how_long_it_usually_takes():
    pulling = Stage(Step.PULLING, (0, 0), image=Pulling("lab:1"))
    assert step(pulling, 400).text == (
        "Downloading your server's software. This usually takes about 7 minutes."
    )
    assert step(pulling, 300, 12_000_000_000).text == (
        "Downloading your server's software (12 GB). This usually takes about 5 minutes."
    )
    assert step(pulling, 4).text.endswith("This usually takes less than a minute.")
    there = Stage(Step.PULLING, (0, 0), image=Pulled("lab:1", was_there=True))
    assert step(there, 400).text == "Your server's software is on the machine."


@pytest.mark.parametrize("kind", Kind)
def test_each_trouble_has_its_sentence_and_a_way_out(kind):
    about = About("notebook", "lab:1", "home", "claim-ann", "nvidia.com/gpu", "secret")
    text = failure(GivenUp(Trouble(kind, about, is_final=True))).text

    assert "Please" in text
    assert "{" not in text
    assert not hitch(Trouble(kind, about)).text.startswith("Please")


def test_a_warning_in_unknown_words_is_not_called_the_cause():
    late = GivenUp(Trouble(Kind.UNKNOWN, texts=("label 'team' is required",)), StartPhase.PREPARED)

    assert failure(late) == failure(GivenUp(late=StartPhase.PREPARED))


def test_a_crash_quotes_the_last_line_as_text():
    said = "Traceback\n  File x\nImportError: <b>torch</b>" + "\x07"
    trouble = Trouble(Kind.CRASHED, exit=Exit(1, last_words=said))

    message = failure(GivenUp(trouble))

    assert "The last line of its log: “ImportError: <b>torch</b>”." in message.text
    assert "<b>" not in message.html


@pytest.mark.parametrize("of", Step)
@pytest.mark.parametrize("usual", [None, 20.0, 400.0])
def test_a_long_step_says_for_how_long_and_what_is_usual(of, usual):
    text = still(Stage(of, (0, 0)), 120, usual, None).text
    assert "2 minutes so far" in text
    assert ("this usually takes" in text) == (usual is not None and of is not Step.NODE_FOUND)
    assert text.endswith(".")


def test_a_hitch_that_lasts_says_for_how_long():
    assert hitch(Trouble(Kind.NETWORK), 30).text == (
        "The machine's network isn't ready for your server. Still trying. 30 seconds so far."
    )


def test_hostile_names_cannot_change_a_sentence():
    image = "x{0.__class__}\n<img src=x onerror=alert(1)>" + "a" * 10_000
    message = failure(GivenUp(Trouble(Kind.IMAGE_MISSING, About(image=image), is_final=True)))

    assert "{0.__class__}" in message.text
    assert "<img" not in message.html
    assert len(message.text) < 1000


GPUS = "No suitable machine has enough free resources of this kind: GPU."
DISK = "No machine can use the disk of your server right now."


UNSCHEDULED = {
    GPUS: [
        "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.",
        (
            "0/9 nodes are available: 2 Insufficient memory, 4 Insufficient nvidia.com/gpu, "
            "3 node(s) had untolerated taint {nvidia.com/gpu: present}. preemption: 0/9 nodes "
            "are available: 9 Preemption is not helpful for scheduling."
        ),
    ],
    "No suitable machine has enough free memory.": [
        "0/2 nodes are available: 1 Insufficient memory, 1 Insufficient cpu."
    ],
    "No suitable machine has enough free disk space.": [
        "0/2 nodes are available: 2 Insufficient ephemeral-storage."
    ],
    "No suitable machine has enough free CPU.": ["0/2 nodes are available: 2 Insufficient cpu."],
    "Every suitable machine already runs as many servers as it can.": [
        "0/2 nodes are available: 1 Too many pods, 1 node(s) were unschedulable."
    ],
    DISK: [
        "0/2 nodes are available: 2 node(s) had volume node affinity conflict.",
        "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found",
    ],
    "Your server is still held back by another part of the cluster.": [
        "Scheduling is blocked due to non-empty scheduling gates"
    ],
    "": [
        "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.",
        "the plugin of another scheduler says no",
        "",
    ],
}


@pytest.mark.parametrize(
    ("text", "said"), [(it, said) for said, its in UNSCHEDULED.items() for it in its]
)
def test_the_scarcest_is_named_and_what_only_administrators_know_isnt(text, said):
    assert why_unscheduled(text) == said


def test_a_start_that_gets_no_node_in_time_says_why():
    text = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
    failed = GivenUp(Trouble(Kind.UNSCHEDULABLE, texts=(text,)), StartPhase.SCHEDULED)

    assert failure(failed).text == (
        f"The cluster didn't find a machine for your server in time. {GPUS} "
        "Please try again later, or tell your administrator."
    )


def test_a_hostile_resource_stays_text():
    text = "0/1 nodes are available: 1 Insufficient example.com/<b>{0}."
    failed = GivenUp(Trouble(Kind.UNSCHEDULABLE, texts=(text,)), StartPhase.SCHEDULED)

    assert "<b>" not in failure(failed).html
