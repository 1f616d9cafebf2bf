"""Messages to users whose server can't start."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.messages import denied, profile_refused, refusal
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.types import Accelerator
from gpuspawner.offers.user_options import GPURequest
from gpuspawner.preflight.decision import (
    Alternative,
    Difference,
    Reason,
    Refuse,
    ResourceRoom,
    TaintedNodes,
)
from gpuspawner.preflight.rejection import Of, OverQuota, Rejection, Use

GI = 1024**3
A100 = Accelerator("a100", "A100", "nvidia.com/gpu")
T4 = Accelerator("t4", "T4", "nvidia.com/gpu")
PLAIN = Alternative(Grant(), (Difference.NO_GPU,), None)
ONE_T4 = Alternative(
    Grant(T4, 1), (Difference.OTHER_ACCELERATOR,), ResourceRoom("nvidia.com/gpu", 1, 1, 2, 1, 4)
)


PODS = ResourceRoom("pods", 1, 0, 0, 110, 110)


def gpus(asked, most_free, free, most, total):
    return ResourceRoom("nvidia.com/gpu", asked, most_free, free, most, total)


def memory(asked, most_free, most=64):
    return ResourceRoom("memory", asked * GI, most_free * GI, most_free * GI, most * GI, most * GI)


def busy(count, room, *alternatives, shortage=None):
    return Refuse(Grant(A100, count), Reason.BUSY, room, shortage, alternatives=alternatives)


def impossible(grant, room=None, **facts):
    return Refuse(grant, Reason.IMPOSSIBLE, room, **facts)


def less(**granted):
    return Alternative(Grant(A100, **granted), (Difference.LESS_MEMORY, Difference.LESS_CPU), None)


SENTENCES = {
    (
        "No A100 is free right now: all 4 are in use. "
        "You can have 1 × T4 (2 free), or start without a GPU."
    ): [busy(1, gpus(1, 0, 0, 4, 4), ONE_T4, PLAIN)],
    "The one A100 is in use right now. Please try again a little later.": [
        busy(1, gpus(1, 0, 0, 1, 1))
    ],
    (
        "You asked for 4 × A100. 3 are free right now, but at most 2 of them on one machine, "
        "and a server runs on one machine. You can start without a GPU."
    ): [busy(4, gpus(4, 2, 3, 4, 8), PLAIN)],
    (
        "2 × A100 are free right now, but not together with the 64 GiB of memory that your "
        "server needs. With your other choices, the most is 40 GiB of memory. "
        "You can have 2 × A100 with 32 GiB of memory and 0.5 cores of CPU or 1 × T4 (2 free)."
    ): [
        busy(
            2,
            gpus(2, 2, 3, 4, 8),
            less(gpus=2, memory=32 * GI, cpu=500),
            ONE_T4,
            shortage=memory(64, 40),
        )
    ],
    "The A100 machines are full right now. Please try again a little later.": [
        busy(1, gpus(1, 1, 1, 4, 8), shortage=PODS)
    ],
    (
        "Your server needs 32 GiB of memory, but no machine has that much free. "
        "With your other choices, the most is 20 GiB of memory. "
        "You can have a server without a GPU with 16 GiB of memory."
    ): [
        Refuse(
            Grant(memory=32 * GI),
            Reason.BUSY,
            shortage=memory(32, 20),
            alternatives=(Alternative(Grant(memory=16 * GI), (Difference.LESS_MEMORY,), None),),
        )
    ],
    "No machine here has 8 × A100; the most is 4. You can start without a GPU.": [
        impossible(
            Grant(A100, 8),
            gpus(8, 4, 4, 4, 4),
            taints=(TaintedNodes("team", "x", "NoSchedule", 2),),
            alternatives=(PLAIN,),
        )
    ],
    (
        "No machine here has 1 × A100 together with the 512 GiB of memory that your server "
        "needs. With your other choices, the most is 64 GiB of memory. "
        "Please choose something else, or ask your administrator."
    ): [impossible(Grant(A100, 1), gpus(1, 1, 1, 4, 4), shortage=memory(512, 60))],
    (
        "No machine here has 1 × A100 together with the 1 × fpga that your server needs. "
        "Please choose something else, or ask your administrator."
    ): [
        impossible(
            Grant(A100, 1), gpus(1, 1, 1, 4, 4), shortage=ResourceRoom("fpga", 1, 0, 0, 0, 0)
        )
    ],
    (
        "No machine here can hold a server with all your choices together. "
        "Please choose something else, or ask your administrator."
    ): [impossible(Grant(A100, 4), gpus(4, 4, 4, 4, 4), shortage=memory(60, 10))],
    (
        "1 × A100 is free right now, but not together with the 32 GiB of memory that your "
        "server needs. None is left with your other choices. "
        "Please try again a little later."
    ): [busy(1, gpus(1, 1, 1, 4, 8), shortage=memory(32, 0))],
    (
        "There is no machine here for this server right now. "
        "Please choose something else, or ask your administrator."
    ): [impossible(Grant())],
    (
        "The machines for this server are reserved; only an administrator can let your server "
        "use them. Please choose something else, or ask your administrator."
    ): [impossible(Grant(), taints=(TaintedNodes("team", "x", "NoSchedule", 2),))],
    (
        "Your choices aren't too large, but a rule of the cluster keeps your server off "
        "every machine. Please choose something else, or ask your administrator."
    ): [impossible(Grant(), candidates=2), impossible(Grant(A100, 1), gpus(1, 1, 1, 4, 4))],
    (
        "No machine here has the 64 cores of CPU that your server needs. "
        "With your other choices, the most is 8 cores of CPU. "
        "Please choose something else, or ask your administrator."
    ): [impossible(Grant(cpu=64000), shortage=ResourceRoom("cpu", 64000, 1000, 1000, 8000, 8000))],
}


@pytest.mark.parametrize(
    ("decision", "text"), [(it, text) for text, its in SENTENCES.items() for it in its]
)
def test_a_refusal_gives_the_reason_and_the_alternatives(decision, text):
    assert refusal(decision).text == text


def test_an_administrators_text_is_escaped():
    hostile = Accelerator("x", "<script>A & B</script>", "nvidia.com/gpu")
    message = refusal(Refuse(Grant(hostile, 1), Reason.BUSY, shortage=PODS))

    assert "<script>A & B</script>" in message.text
    assert "<script>" not in message.html
    assert message.html.startswith("<strong>The &lt;script&gt;A &amp; B&lt;/script&gt; machines")


numbers = st.integers(0, 9)
rooms = st.builds(
    ResourceRoom,
    st.sampled_from(["nvidia.com/gpu", "memory", "cpu", "pods", "hugepages-2Mi"]),
    *[numbers] * 5,
)
grants = st.builds(Grant, st.sampled_from([A100, T4]), st.integers(1, 8)) | st.builds(Grant)
alternatives = st.builds(
    Alternative,
    grants,
    st.lists(st.sampled_from(Difference), min_size=1, max_size=2).map(tuple),
    st.none() | rooms,
)
refusals = st.builds(
    Refuse,
    grants,
    st.sampled_from(Reason),
    st.none() | rooms,
    st.none() | rooms,
    st.just(()) | st.just((TaintedNodes("k", "", "NoSchedule", 1),)),
    alternatives=st.lists(alternatives, max_size=3).map(tuple),
)


@given(refusals)
def test_every_refusal_is_a_few_whole_sentences_without_jargon(decision):
    text = refusal(decision).text

    assert text.endswith(".")
    assert len(text) < 400
    assert not any(jargon in text.lower() for jargon in ("pod", "node", "taint", "kube"))


def test_a_denial_asks_to_choose_again():
    asked = GPURequest("a100", 9)

    assert denied(asked).text == (
        "a100 isn't available with these options. "
        "Please choose something else, or ask your administrator."
    )
    assert "Please choose something else" in denied(GPURequest()).text


NAMELESS = Grant(Accelerator("gpu", "GPU", "nvidia.com/gpu"), 1)
BUSY = Refuse(NAMELESS, Reason.BUSY, gpus(1, 0, 0, 4, 8))


def test_a_refusal_names_the_profile_the_reason_and_the_alternatives():
    message = profile_refused(BUSY, "“<b>”", ["“CPU”", "“T4”"])

    assert message.text == (
        "“<b>” can't start right now. No GPU is free right now: all 8 are in use. "
        "You can start one of these instead: “CPU”; “T4”."
    )
    assert message.html.startswith("<strong>“&lt;b&gt;” can&#39;t start right now.</strong> No GPU")


def test_a_refusal_without_alternatives_says_what_to_do():
    text = profile_refused(BUSY, "“GPU”", []).text

    assert text.endswith("all 8 are in use. Please try again a little later.")


def test_without_profiles_the_message_is_the_usual_one():
    assert profile_refused(BUSY, "", []) == refusal(BUSY)


@pytest.mark.parametrize(
    ("reason", "lead"),
    [
        (Reason.AWAY, "“GPU” can't start right now. All machines that could hold your server"),
        (
            Reason.IMPOSSIBLE,
            (
                "“GPU” can't start on any machine here. There is no machine here for this server "
                "right now."
            ),
        ),
        (Reason.NOT_ADMITTED, "“GPU” can't start. "),
    ],
)
def test_a_profile_is_said_to_be_impossible_only_if_it_is(reason, lead):
    decision = Refuse(NAMELESS, reason, gpus(1, 0, 0, 0, 0))

    assert profile_refused(decision, "“GPU”", []).text.startswith(lead)


@pytest.mark.parametrize(
    ("limit", "lead"), [(1, "“GPU” can't start. "), (2, "“GPU” can't start right now. ")]
)
def test_a_profile_over_the_whole_quota_never_starts(limit, lead):
    cause = OverQuota((Use("requests.nvidia.com/gpu", 2, 1, limit),))
    decision = Refuse(Grant(A100, 2), Reason.QUOTA, rejection=Rejection(Of.POD, cause, ""))

    assert profile_refused(decision, "“GPU”", []).text.startswith(lead)
