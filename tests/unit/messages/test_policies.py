"""What policies deny, as users read it."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.messages.policies import policy_denied
from gpuspawner.policies.limits import OfferKind, OverLimit, Standing, Uncounted, Withheld
from gpuspawner.policies.policies import Limit, Measure, Per, Policy, What

GIB = 2**30
MIG = "nvidia.com/mig-1g.5gb"
GPUS, SERVERS = Measure(What.GPUS), Measure(What.GPU_SERVERS)
MEMORY, CPU = Measure(What.MEMORY), Measure(What.CPU)
NAMES = {"t4": "Tesla T4"}
QUIET = Policy("course")
EXPLAINED = Policy("course", explanation="The course shares eight GPUs.")
ASK = "Please choose something else, or ask your administrator."
STOP = "Stop one of these servers first, or choose a smaller one."
STOP_FIRST = "Stop one of these servers first."
LATER = "Please choose a smaller server, or try again later."


def gpus(of):
    return Measure(What.GPUS, of)


def over(per, measure, most, asked, used=0, *servers, policy=QUIET):
    group = "ml-2026" if per is Per.GROUP else ""
    return OverLimit(Standing(policy, Limit(per, measure, most), group, used, servers), asked)


SENTENCES = {
    f"Tesla T4 isn't offered to you. {ASK}": [
        Withheld(QUIET, OfferKind.ACCELERATOR, "t4"),
        over(Per.GROUP, gpus("t4"), 0, 1),
    ],
    f"“large” isn't offered to you. {ASK}": [Withheld(QUIET, OfferKind.PROFILE, "large")],
    f"gone isn't offered to you. {ASK}": [Withheld(QUIET, OfferKind.ACCELERATOR, "gone")],
    f"A server of yours can have at most 2 GPUs; this one would have 4 GPUs. {ASK}": [
        over(Per.SERVER, GPUS, 2, 4)
    ],
    (f"A server of yours can have at most 1 × Tesla T4; this one would have 2 × Tesla T4. {ASK}"): [
        over(Per.SERVER, gpus("t4"), 1, 2)
    ],
    (
        "A server of yours can have at most 1.5 cores of CPU; this one would have 4 cores of "
        f"CPU. {ASK}"
    ): [over(Per.SERVER, CPU, 1500, 4000)],
    f"You can have at most 1 GPU at a time; this server would have 2 GPUs. {ASK}": [
        over(Per.USER, GPUS, 1, 2)
    ],
    f"You can have 4 GPUs at a time, and you're using 2: demo and train. {STOP}": [
        over(Per.USER, GPUS, 4, 3, 2, "demo", "train")
    ],
    f"You can have 1 GPU at a time, and you're using 1: your default server. {ASK}": [
        over(Per.USER, GPUS, 1, 2, 1, "")
    ],
    (
        "You can have at most 2 GPUs at a time; this server would have 1 GPU. "
        "Please try again later."
    ): [over(Per.USER, GPUS, 2, 1, 2)],
    f"You can have 1 server with a GPU at a time, and you're using 1: train. {STOP_FIRST}": [
        over(Per.USER, SERVERS, 1, 1, 1, "train")
    ],
    f"You can have 8 cores of CPU at a time, and you're using 6.5 cores: train. {STOP}": [
        over(Per.USER, CPU, 8000, 4000, 6500, "train")
    ],
    f"You can have 0.429 × MIG slice 1g.5gb at a time, and you're using 0.429: a. {STOP_FIRST}": [
        over(Per.USER, gpus(MIG), Fraction(3, 7), Fraction(1, 7), Fraction(3, 7), "a")
    ],
    f"You can have 1 GPU at a time, and you're using 1: a. {STOP_FIRST}": [
        over(Per.USER, GPUS, 1, Fraction(1, 7), Fraction(7, 7), "a")
    ],
    f"You can have at most 0.5 GPUs at a time; this server would have 1 GPU. {ASK}": [
        over(Per.USER, GPUS, Fraction(1, 2), Fraction(7, 7))
    ],
    f"No GPU is offered to you. {ASK}": [
        over(Per.SERVER, GPUS, 0, 1),
        over(Per.USER, SERVERS, 0, 1),
    ],
    f"You can have at most 1 × GPU at a time; this server would have 2 × GPU. {ASK}": [
        over(Per.USER, gpus("nvidia.com/gpu"), 1, 2)
    ],
    (
        "The group ml-2026 can have 8 GPUs at a time, and uses 8; your server would add "
        "1 GPU. Please try again later."
    ): [over(Per.GROUP, GPUS, 8, 1, 8)],
    (
        "The group ml-2026 can have 1 GPU at a time, and uses 0; your server would add "
        f"2 GPUs. {ASK}"
    ): [over(Per.GROUP, GPUS, 1, 2, 0)],
    (
        "The course shares eight GPUs. The group ml-2026 can have 1200 GPUs at a time, and "
        f"uses 1199.5; your server would add 0.5 GPUs. {LATER}"
    ): [over(Per.GROUP, GPUS, 1200, Fraction(1, 2), Fraction(2399, 2), policy=EXPLAINED)],
    "The hub can't count right now how much is in use. Please try again in a few seconds.": [
        Uncounted("the servers' pods can't be read: Forbidden")
    ],
}


@pytest.mark.parametrize(
    ("denial", "text"), [(it, text) for text, its in SENTENCES.items() for it in its]
)
def test_a_denial_gives_the_reason_the_figures_and_the_way_out(denial, text):
    assert policy_denied(denial, NAMES).text == text


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("The course shares eight GPUs.", "The course shares eight GPUs."),
        ("the course shares eight GPUs", "The course shares eight GPUs."),
        ("Ask us first!\n", "Ask us first!"),
        ("  More? Write to gpu@example.org\n", "More? Write to gpu@example.org."),
        ("GPUs cost {money} and 100%", "GPUs cost {money} and 100%."),
    ],
)
def test_the_administrator_s_explanation_comes_first_as_a_sentence(written, read):
    policy = Policy("p", explanation=written)

    for denial in (
        Withheld(policy, OfferKind.IMAGE, "x"),
        over(Per.USER, GPUS, 1, 2, policy=policy),
    ):
        message = policy_denied(denial, NAMES)
        assert message.text.startswith(f"{read} ")
        assert message.html.startswith("<strong>")
        assert message.html.count("<strong>") == 1


HOSTILE = '<img src=x onerror="alert(1)">{used}%s&amp;'


HOSTILE_NAMES = {
    "explanation": Withheld(Policy("p", explanation=HOSTILE), OfferKind.ACCELERATOR, "t4"),
    "accelerator": Withheld(QUIET, OfferKind.ACCELERATOR, HOSTILE),
    "display name": Withheld(QUIET, OfferKind.ACCELERATOR, "odd"),
    "profile": Withheld(QUIET, OfferKind.PROFILE, HOSTILE),
    "server": over(Per.USER, GPUS, 2, 1, 2, HOSTILE, "a"),
    "resource": over(Per.SERVER, gpus(HOSTILE), 2, 3),
    "group": OverLimit(Standing(QUIET, Limit(Per.GROUP, GPUS, 1), HOSTILE), 1),
}


@pytest.mark.parametrize("denial", HOSTILE_NAMES.values(), ids=HOSTILE_NAMES)
def test_hostile_names_are_text_and_never_html(denial):
    message = policy_denied(denial, {**NAMES, "odd": HOSTILE})

    assert HOSTILE in message.text
    assert "<img" not in message.html
    assert "&lt;img src=x onerror=&#34;alert(1)&#34;&gt;{used}%s&amp;amp;" in message.html


amounts = st.integers(0, 2**50) | st.fractions(0, 5000, max_denominator=64)
denials = st.builds(
    OverLimit,
    st.builds(
        Standing,
        st.sampled_from([QUIET, EXPLAINED]),
        st.builds(
            Limit,
            st.sampled_from(Per),
            st.sampled_from([GPUS, SERVERS, MEMORY, CPU, gpus("t4"), gpus(MIG)]),
            amounts,
        ),
        st.just("ml-2026"),
        amounts,
        st.lists(st.sampled_from(["", "train", "a"]), max_size=3, unique=True).map(tuple),
    ),
    amounts,
)


@given(denials)
def test_every_denial_is_a_few_whole_sentences_with_plain_figures(denial):
    text = policy_denied(denial, NAMES).text

    assert text.endswith(".")
    assert len(text) < 300
    assert "/" not in text
    assert "{" not in text
    assert "Fraction" not in text
    for jargon in ("pod", "policy", "limit", "weight", "namespace"):
        assert jargon not in text.lower()
