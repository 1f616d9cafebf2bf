"""A megabyte of any text is read in no time: the hub does nothing else meanwhile."""

from time import process_time

import pytest

from gpuspawner.troubles import images, scheduler_message
from gpuspawner.troubles.pod_troubles import troubles
from gpuspawner.troubles.steps import stages
from tests.unit.makers.starts import NOTEBOOK, condition, ended, event, start, waiting, warning

pytestmark = pytest.mark.each_python

MEGABYTE = 1_000_000
PIECES = [
    "a",
    " ",
    "\n",
    "\\",
    '"',
    "{",
    "[",
    ", 1 a",
    "1 ",
    ". ",
    "{a 0->1 (max: ",
    "node(s) had untolerated taint {",
    "0/1 nodes are available: ",
    "preemption: ",
    "cpu (1), ",
    "claim ",
    'image "',
    'image "\\',
    'Back-off pulling image "\\"',
    "manifest for ",
    "repository ",
    "tag ",
    'failed to resolve reference "',
    "https://",
    "exec ",
    "couldn't find key ",
    'secret "',
    "already used by pod(s) a, ",
    "volumes=[",
    'for volume "',
    "The node was low on resource: ",
    "cannot allocate unhealthy devices ",
    "requested number of devices unavailable for ",
    "Container ",
    'no runtime for "',
    "attached to node ",
    "1h1m1s1ms",
    'Successfully pulled image "a" in ',
]
HEADS = ["", "0/1 nodes are available: 1 node(s) had taint {", 'Failed to pull image "']


def of_scheduler(text):
    list(scheduler_message.reasons(text))


def of_pulls(text):
    images.read_pull(text)


def of_pod(text):
    crashed = {**waiting("CreateContainerConfigError", text), "lastState": ended(1, message=text)}
    pod = start(
        phase="Failed",
        reason="Evicted",
        message=text,
        conditions=[condition("DisruptionTarget", reason="TerminationByKubelet", message=text)],
        notebook=crashed,
        init=waiting("ImagePullBackOff", text),
    )
    assert text in {it.text for it in troubles(pod, [])}
    stages(pod, [])


def of_events(text):
    reasons = ("Failed", "FailedMount", "FailedCreatePodSandBox", "UnexpectedAdmissionError")
    events = [warning(it, text, container=NOTEBOOK) for it in reasons]
    events += [event(it, text) for it in ("Pulled", "Scheduled", "TriggeredScaleUp")]
    assert {it.text for it in troubles(start(), events)} == {text}
    stages(start(), events)


@pytest.mark.parametrize("read", [of_scheduler, of_pulls, of_pod, of_events])
@pytest.mark.parametrize("piece", PIECES)
def test_a_megabyte_is_read_in_a_second(read, piece):
    for head in HEADS:
        text = (head + piece * (MEGABYTE // len(piece)))[:MEGABYTE]
        began = process_time()
        read(text)
        assert process_time() - began < 1
