"""The sentences that the documentation quotes, compared with gpuspawner's messages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpuspawner import messages
from gpuspawner.messages.scaling import no_more
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.types import Accelerator
from gpuspawner.offers.user_options import parse
from gpuspawner.preflight.decision import (
    AfterPreemption,
    Alternative,
    Difference,
    HeldBy,
    Overruled,
    Reason,
    Refuse,
    ResourceRoom,
    Start,
    TaintedNodes,
    UnknownRules,
    Wait,
)
from gpuspawner.preflight.rejection import (
    Bound,
    Breach,
    Denied,
    Insecure,
    Missing,
    Of,
    OutOfRange,
    OverQuota,
    Rejection,
    RejectionCause,
    Use,
)
from gpuspawner.scaling.outlook import CanScaleUp, MayScaleUp, Obstacle, Source, WhyNoNode
from gpuspawner.troubles.giving_up import GivenUp, StartPhase
from gpuspawner.troubles.trouble import About, Kind, Trouble

ROOT = Path(__file__).parents[2]
GIB = 2**30


def nvidia(name: str, gpus: int, memory: int | None = None) -> Grant:
    accelerator = Accelerator(name.lower(), f"NVIDIA {name}", "nvidia.com/gpu")
    return Grant(accelerator=accelerator, gpus=gpus, memory=memory)


def gpus(asked: int, most_free: int, free: int, most: int, total: int) -> ResourceRoom:
    return ResourceRoom("nvidia.com/gpu", asked, most_free, free, most, total)


def rejected(cause: RejectionCause, of: Of = Of.POD) -> Rejection:
    return Rejection(of, cause, "what the API server said")


WHAT = About(image="quay.io/lab:1", name="settings")
"""What the examples of failed starts are about."""
UNTOLD = (Kind.HUB_RESTARTED, Kind.STOPPED, Kind.UNSCHEDULABLE)
"""Two are of no start that the hub follows; the preflight has its own words for one."""
WITHOUT = Alternative(Grant(), (Difference.NO_GPU,), None)
OFFERS = Offers.parse(
    accelerators={
        "a100": {
            "display_name": "NVIDIA A100",
            "node_selector": {"gpu": "a100"},
            "counts": [1, 2, 4],
        }
    },
    memory_choices=["8Gi", "16Gi"],
)
SENTENCES = {
    "the last one": messages.refusal(
        Refuse(nvidia("T4", 1), Reason.BUSY, gpus(1, 0, 0, 1, 1), alternatives=(WITHOUT,))
    ),
    "fewer": messages.refusal(
        Refuse(
            nvidia("V100", 4),
            Reason.BUSY,
            gpus(4, 3, 3, 4, 4),
            alternatives=(
                Alternative(nvidia("V100", 3), (Difference.FEWER_GPUS,), gpus(3, 3, 3, 4, 4)),
                WITHOUT,
            ),
        )
    ),
    "not on one node": messages.refusal(
        Refuse(
            nvidia("V100", 4),
            Reason.BUSY,
            gpus(4, 2, 5, 4, 8),
            alternatives=(
                Alternative(nvidia("V100", 2), (Difference.FEWER_GPUS,), gpus(2, 2, 5, 4, 8)),
                Alternative(nvidia("T4", 4), (Difference.OTHER_ACCELERATOR,), gpus(4, 4, 6, 4, 8)),
            ),
        )
    ),
    "not with so much memory": messages.refusal(
        Refuse(
            nvidia("A100", 1, 64 * GIB),
            Reason.BUSY,
            gpus(1, 2, 2, 8, 16),
            shortage=ResourceRoom("memory", 64 * GIB, 30 * GIB, 40 * GIB, 100 * GIB, 200 * GIB),
            alternatives=(
                Alternative(nvidia("A100", 1, 16 * GIB), (Difference.LESS_MEMORY,), None),
            ),
        )
    ),
    "the home in another server": messages.refusal(
        Refuse(nvidia("A100", 1), Reason.BUSY, held=HeldBy.OWN)
    ),
    "a volume in another pod": messages.refusal(
        Refuse(nvidia("A100", 1), Reason.BUSY, held=HeldBy.OTHER)
    ),
    "others at once": messages.refusal(
        Refuse(nvidia("A100", 1), Reason.TRY_AGAIN, gpus(1, 1, 1, 1, 1))
    ),
    "taken": messages.refusal(Refuse(nvidia("A100", 1), Reason.TAKEN, gpus(1, 0, 0, 0, 1))),
    "away": messages.refusal(Refuse(nvidia("A100", 1), Reason.AWAY, gpus(1, 0, 0, 0, 0))),
    "more than any node has": messages.refusal(
        Refuse(nvidia("A100", 16), Reason.IMPOSSIBLE, gpus(16, 8, 8, 8, 16))
    ),
    "reserved": messages.refusal(
        Refuse(
            nvidia("A100", 1),
            Reason.IMPOSSIBLE,
            gpus(1, 0, 0, 0, 0),
            taints=(TaintedNodes("team", "physics", "NoSchedule", 2),),
            alternatives=(WITHOUT,),
        )
    ),
    "large ones reserved": messages.refusal(
        Refuse(
            nvidia("A100", 8),
            Reason.IMPOSSIBLE,
            gpus(8, 4, 4, 4, 4),
            taints=(TaintedNodes("team", "physics", "NoSchedule", 2, large=2),),
            alternatives=(Alternative(nvidia("A100", 4), (Difference.FEWER_GPUS,), None),),
        )
    ),
    "one share": messages.refusal(
        Refuse(
            nvidia("T4", 2),
            Reason.IMPOSSIBLE,
            gpus(2, 4, 4, 4, 4),
            one_share=True,
            alternatives=(Alternative(nvidia("T4", 1), (Difference.FEWER_GPUS,), None),),
        )
    ),
    "no such machine": messages.refusal(
        Refuse(nvidia("H100", 1), Reason.IMPOSSIBLE, gpus(1, 0, 0, 0, 0))
    ),
    "at its maximum": messages.refusal(
        Refuse(
            nvidia("T4", 1),
            Reason.BUSY,
            gpus(1, 0, 0, 1, 1),
            obstacles=(Obstacle(WhyNoNode.AT_MAXIMUM, "t4"),),
            alternatives=(WITHOUT,),
        )
    ),
    "over the quota": messages.refusal(
        Refuse(
            nvidia("A100", 2),
            Reason.QUOTA,
            rejection=rejected(OverQuota((Use("requests.nvidia.com/gpu", 2, 3, 4),))),
            alternatives=(Alternative(nvidia("A100", 1), (Difference.FEWER_GPUS,), None), WITHOUT),
        )
    ),
    "beyond the quota": messages.refusal(
        Refuse(
            nvidia("A100", 1),
            Reason.QUOTA,
            rejection=rejected(OverQuota((Use("limits.memory", 64 * GIB, 0, 32 * GIB),))),
        )
    ),
    "no quota for a home": messages.refusal(
        Refuse(
            nvidia("A100", 1),
            Reason.QUOTA,
            rejection=rejected(
                OverQuota((Use("requests.storage", 10 * GIB, 95 * GIB, 100 * GIB),)), Of.HOME
            ),
        )
    ),
    "out of range": messages.refusal(
        Refuse(
            nvidia("A100", 1, 64 * GIB),
            Reason.LIMIT_RANGE,
            rejection=rejected(OutOfRange((Breach("memory", Bound.MAXIMUM, 16 * GIB, 64 * GIB),))),
            alternatives=(
                Alternative(nvidia("A100", 1, 16 * GIB), (Difference.LESS_MEMORY,), None),
            ),
        )
    ),
    "below the range": messages.refusal(
        Refuse(
            nvidia("A100", 1),
            Reason.LIMIT_RANGE,
            rejection=rejected(OutOfRange((Breach("cpu", Bound.MINIMUM, 2000, 1000),))),
        )
    ),
    "insecure": messages.refusal(
        Refuse(Grant(), Reason.NOT_ADMITTED, rejection=rejected(Insecure("restricted")))
    ),
    "missing": messages.refusal(
        Refuse(Grant(), Reason.NOT_ADMITTED, rejection=rejected(Missing("RuntimeClass", "nvidia")))
    ),
    "denied": messages.refusal(
        Refuse(
            Grant(),
            Reason.NOT_ADMITTED,
            rejection=rejected(Denied("images come from quay.io only")),
        )
    ),
    "only warned": messages.progress(
        Start(
            nvidia("T4", 1),
            (Overruled(Refuse(nvidia("T4", 1), Reason.BUSY, gpus(1, 0, 0, 1, 1))),),
        )
    )[0],
    "wrong options": messages.correction(
        parse({"accelerator": "a100", "gpus": 3, "memory": "1Ti"}, OFFERS)
    ),
    "misconfigured": messages.misconfigured(),
    "unreachable": messages.unreachable(),
    "growing": messages.progress(Wait(nvidia("T4", 1), CanScaleUp(0, 4, 8.0)))[0],
    "trying": messages.progress(Wait(nvidia("T4", 1), MayScaleUp(Source.NODES)))[0],
    "preempting": messages.progress(Start(nvidia("T4", 1), (AfterPreemption(),)))[0],
    "unknown": messages.progress(Start(nvidia("T4", 1), (UnknownRules(("gates",)),)))[0],
}


def words(page: str) -> str:
    """Return a page's text in one line, without Markdown's quote marks."""
    text = re.sub(r"^\s*>", "", (ROOT / page).read_text(), flags=re.MULTILINE)
    return " ".join(text.split())


@pytest.mark.parametrize("sentence", SENTENCES)
def test_the_reference_quotes_the_messages(sentence: str):
    assert SENTENCES[sentence].text in words("docs/reference/messages.md")


@pytest.mark.parametrize("why", WhyNoNode)
def test_the_reference_says_why_no_node_comes(why: WhyNoNode):
    assert f"\n| {no_more([Obstacle(why)])} | " in (ROOT / "docs/reference/messages.md").read_text()


@pytest.mark.parametrize(
    "sentence", ["the last one", "not on one node", "growing", "over the quota"]
)
def test_the_readme_quotes_the_messages(sentence: str):
    assert SENTENCES[sentence].text in words("README.md")


FAILURES = {
    **{kind.value: GivenUp(Trouble(kind, WHAT)) for kind in Kind if kind not in UNTOLD},
    **{f"not-{phase}": GivenUp(late=phase) for phase in StartPhase},
    "unschedulable": GivenUp(
        Trouble(
            Kind.UNSCHEDULABLE, texts=("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.",)
        )
    ),
}


@pytest.mark.parametrize("slug", FAILURES)
def test_the_reference_says_how_each_failure_of_a_start_is_told(slug: str):
    told = messages.failure(FAILURES[slug]).text
    rows = (ROOT / "docs/reference/failed-starts.md").read_text().splitlines()

    assert any(f"`{slug}`" in row and row.endswith(f" | {told} |") for row in rows)


@pytest.mark.parametrize("slug", Reason)
def test_every_reason_is_in_the_reference(slug: str):
    assert f"`{slug}`" in (ROOT / "docs/reference/messages.md").read_text()


USERS = "docs/users.md"
RAISED = {
    slug
    for path in (ROOT / "gpuspawner").rglob("*.py")
    for slug in re.findall(r'\breason="([a-z-]+)"', path.read_text())
}
"""The reasons of refusals that aren't the preflight's."""


@pytest.mark.parametrize("slug", sorted({*Reason, *RAISED}))
def test_the_page_for_users_has_an_address_for_each_reason(slug: str):
    assert f'<a id="{slug}"></a>' in (ROOT / USERS).read_text()


@pytest.mark.parametrize("quoted", re.findall(r"(?:^> .*\n)+", (ROOT / USERS).read_text(), re.M))
def test_the_page_for_users_quotes_what_the_reference_quotes(quoted: str):
    lines = " ".join(quoted.replace("\n>", "\n").removeprefix("> ").split())

    assert lines in words("docs/reference/messages.md") + words("docs/how-to/kueue.md")


CATALOGUE = (ROOT / "gpuspawner/locale/gpuspawner.pot").read_text()
TOLD = "".join(re.findall(r'^(?:msgid )?"(.*)"$', CATALOGUE, re.MULTILINE))
ENDED = re.findall(
    r"^\| (?:… |Your last server )?([^|\d\n]+\.) \|", (ROOT / USERS).read_text(), re.M
)


@pytest.mark.parametrize("ending", ENDED)
def test_the_page_for_users_tells_how_servers_and_waits_end_as_the_hub_does(ending: str):
    assert ending in TOLD
