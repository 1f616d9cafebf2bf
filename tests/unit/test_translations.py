"""Every sentence that users read is in the catalogue, and no word of it is outside."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner import messages
from gpuspawner.form.render import render
from gpuspawner.form.view_model import LiveAddresses
from gpuspawner.messages import OnForm
from gpuspawner.messages.policies import policy_denied
from gpuspawner.messages.starts import preview
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.options import NAMES
from gpuspawner.offers.user_options import Gone, GPURequest, parse
from gpuspawner.policies import limits as policy_limits
from gpuspawner.policies.entitlement import denied
from gpuspawner.policies.limits import Standing
from gpuspawner.policies.policies import Limit, Measure, Per, Policy, What
from gpuspawner.preflight.availability import Availability, State
from gpuspawner.preflight.decision import (
    AfterPreemption,
    Alternative,
    Difference,
    Overruled,
    Reason,
    Refuse,
    ResourceRoom,
    Start,
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
    QuotaDemands,
    QuotaUncounted,
    Rejection,
    Unexplained,
    Use,
    WebhookFailed,
)
from gpuspawner.profiles.profile_list import WRITTEN_IN, read
from gpuspawner.profiles.profile_options import Chosen, choose
from gpuspawner.scaling.outlook import CanScaleUp, MayScaleUp, Obstacle, Source, WhyNoNode
from tests.unit.makers.pages import Page
from tests.unit.makers.translating import Pseudo, speaking, untranslated

GIB = 2**30
# Its names have no letters, so each letter on a page belongs to a sentence.
OFFERS = Offers.parse(
    accelerators={
        "1": {"display_name": "1", "counts": [1, 2], "node_selector": {"x": "1"}},
        "2": {
            "display_name": "2",
            "resource": "nvidia.com/mig-1g.5gb",
            "node_selector": {"x": "2"},
        },
        "3": {
            "display_name": "3",
            "resource": "nvidia.com/gpu.shared",
            "node_selector": {"x": "3"},
        },
    },
    images={"7": {"image": "7", "display_name": "7"}},
    memory_choices=["8Gi"],
    cpu_choices=[1, 2],
)
ONE = OFFERS.accelerators["1"]
UNLISTED = {
    "unlisted_image": {"validation_regex": "[0-9]"},
    "unlisted_memory": {"min": "2Gi", "max": "4Gi"},
}
OTHER_OFFERS = [
    OFFERS,
    Offers.parse().with_accelerators(OFFERS.accelerators.values()),
    Offers.parse(cpu_choices=[1], memory_choices=["8Gi"], **UNLISTED),
    Offers.parse(**UNLISTED),
    Offers(),
]
IMAGE_REGEX = {"enabled": True, "validation_regex": "^[0-9]{3}$"}
ADVICE = {**IMAGE_REGEX, "validation_message": "3"}
PROFILES = read(
    [
        {
            "slug": "1",
            "display_name": "1",
            "default": True,
            "profile_options": {
                "1": {"choices": {"1": {"display_name": "1"}, "2": {"display_name": "2"}}},
                "2": {"choices": {"1": {"display_name": "1"}}, "unlisted_choice": IMAGE_REGEX},
                "3": {"unlisted_choice": ADVICE},
                "4": {"unlisted_choice": {**IMAGE_REGEX, "validation_regex": "^(1|11)+$"}},
            },
        },
        {"slug": "2", "display_name": "2"},
    ]
)
LIVE = LiveAddresses("8", "8", "8", "8")


def room(resource, asked, most_free, free, most, total):
    return ResourceRoom(resource, asked, most_free, free, most, total)


GRANT = Grant(ONE, 2, None, 8 * GIB, 1000)
ALTERNATIVES = (
    Alternative(GRANT, (Difference.LESS_MEMORY, Difference.LESS_CPU), None),
    Alternative(GRANT, (Difference.OTHER_ACCELERATOR,), room("x", 1, 1, 1, 1, 1)),
    Alternative(Grant(), (Difference.NO_GPU,), None),
)
ROOMS = [
    None,
    *(
        room(resource, 2, most_free, free, most, total)
        for resource in ("nvidia.com/gpu", "memory", "cpu", "pods")
        for most_free, free, most, total in [(0, 0, 1, 1), (0, 0, 4, 4), (1, 1, 4, 4), (1, 3, 4, 8)]
    ),
    room("nvidia.com/gpu", 2, 0, 0, 0, 0),
    room("memory", 8 * GIB, GIB, GIB, GIB, GIB),
]
refusals = st.builds(
    Refuse,
    st.sampled_from([GRANT, Grant(memory=GIB), Grant()]),
    st.sampled_from(
        [
            Reason.BUSY,
            Reason.TRY_AGAIN,
            Reason.TAKEN,
            Reason.AWAY,
            Reason.IMPOSSIBLE,
        ]
    ),
    st.sampled_from(ROOMS),
    st.sampled_from(ROOMS),
    alternatives=st.lists(st.sampled_from(ALTERNATIVES), max_size=3).map(tuple),
    obstacles=st.lists(st.builds(Obstacle, st.sampled_from(WhyNoNode)), max_size=2).map(tuple),
)


@given(refusals)
def test_every_refusal_is_translated(decision):
    with speaking("x", Pseudo()):
        for message in (messages.refusal(decision), OnForm.of_refusal(decision).message):
            assert untranslated(message.text) == []
        assert untranslated(preview(decision).text) == []


def test_every_other_message_is_translated():
    waits = [
        Wait(GRANT, scale_up)
        for scale_up in (
            CanScaleUp(1, 2, 8.0),
            CanScaleUp(1, None, None),
            MayScaleUp(Source.NODES),
        )
    ]
    busy = Refuse(GRANT, Reason.BUSY)
    unsure = Start(GRANT, (AfterPreemption(), UnknownRules(("x",))))
    warned = Start(GRANT, (Overruled(busy),))
    with speaking("x", Pseudo()):
        told = [
            messages.misconfigured(),
            messages.unreachable(),
            messages.already_started(),
            messages.correction([messages.unreadable_body(), messages.too_large(1, 1)]),
            messages.no_longer_offered(),
            messages.gone_from_form([Gone("gpus", "1")]),
            messages.gone_at_start([Gone("gpus", "1"), Gone("image", "1")], {"image": "1"}),
            messages.profile_refused(busy, messages.profile_named("1", "1"), ["1", "1"]),
            messages.profile_refused(busy, messages.profile_named("1"), []),
            messages.denied(GPURequest("1")),
            messages.denied(GPURequest(None)),
            *(message for it in (*waits, unsure, warned) for message in messages.progress(it)),
            *map(preview, (*waits, unsure, warned, Start(GRANT))),
        ]
    for message in told:
        assert untranslated(message.text) == []


USES = (
    Use("requests.nvidia.com/gpu", 1, 4, 4),
    Use("cpu", 2, 0, 1),
    Use("requests.memory", GIB, GIB, GIB),
    Use("requests.storage", 2 * GIB, 0, GIB),
    Use("ephemeral-storage", GIB, GIB, GIB),
)
BREACHES = tuple(
    Breach("memory", bound, GIB, asked) for bound in Bound for asked in (None, 2 * GIB)
)


@pytest.mark.parametrize("of", list(Of))
@pytest.mark.parametrize(
    "cause",
    [
        OverQuota(USES),
        OverQuota(USES[:1]),
        OutOfRange(BREACHES),
        QuotaDemands(("limits.memory",)),
        QuotaUncounted(),
        Insecure("1"),
        Missing("1", "1"),
        Denied("1"),
        Denied(""),
        WebhookFailed("1"),
        Unexplained(),
    ],
)
def test_every_rejection_by_the_api_server_is_translated(cause, of):
    with speaking("x", Pseudo()):
        told = messages.refusal(
            Refuse(GRANT, Reason.NOT_ADMITTED, rejection=Rejection(of, cause, ""))
        )
    assert untranslated(told.text) == []


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "nvidia.com/gpu.shared", "x/mig-1"])
def test_every_device_is_translated(resource):
    with speaking("x", Pseudo()):
        assert untranslated(messages.device(resource)) == []


sent = st.sampled_from(
    [None, True, 0, 1, 9, 0.5, 10**20, "", "1", "11", "9", "8Gi", "3Gi", [], {}, "1" * 60 + "!"]
)
bodies = (
    st.dictionaries(st.sampled_from(NAMES), sent)
    | st.dictionaries(st.sampled_from([*NAMES, "8", "9", "10", "11"]), sent)
    | sent
)


@given(bodies, st.sampled_from(OTHER_OFFERS))
def test_every_error_in_options_is_translated(raw, offers):
    with speaking("x", Pseudo()):
        errors = parse(raw, offers)
        told = () if isinstance(errors, GPURequest) else (messages.correction(errors),)
    for message in told:
        assert untranslated(message.text) == []


fields = st.sampled_from(
    ["profile", *(f"{number}{suffix}" for number in "1234" for suffix in ("", WRITTEN_IN))]
)


@given(st.dictionaries(fields, sent) | sent)
def test_every_error_in_a_profile_is_translated(raw):
    with speaking("x", Pseudo()):
        errors = choose(raw, PROFILES)
        told = () if isinstance(errors, Chosen) else (messages.correction(errors),)
    for message in told:
        assert untranslated(message.text) == []


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("live", [None, LIVE])
def test_all_of_the_form_is_translated(state, live):
    gpus = room("nvidia.com/gpu", 1, 1, 2, 2, 4)
    rows = [Availability(it, state, gpus) for it in OFFERS.accelerators.values()]
    rows += [Availability(None, state)]
    decision = Refuse(GRANT, Reason.BUSY, room("x", 2, 1, 1, 2, 2), alternatives=ALTERNATIVES)
    with speaking("x", Pseudo()):
        told = OnForm.of_refusal(decision)
        html = render(OFFERS, rows, {"accelerator": "1"}, told, live)
    page = Page(html)
    text = " ".join(element.text for element in page.elements if element.tag not in ("style",))
    style = page.one("style").text if live is None else ""
    assert untranslated(text.replace(style, "")) == []
    told_to_the_script = [
        value or ""
        for element in page.elements
        for name, value in element.attributes.items()
        if name
        in ("data-busy", "data-never", "data-why", "data-stale", "data-changed", "aria-label")
    ]
    assert untranslated(" ".join(told_to_the_script)) == []
    assert 'lang="x"' in html


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("chosen", [{}, {"image": "8"}])
def test_all_of_a_form_with_text_fields_is_translated(state, chosen):
    with speaking("x", Pseudo()):
        html = render(Offers.parse(**UNLISTED), [Availability(None, state)], chosen, live=LIVE)
    text = " ".join(element.text for element in Page(html).elements)
    assert untranslated(text) == []


POLICY = Policy("1", explanation="3")
MEASURES = (*map(Measure, What), Measure(What.GPUS, "1"), Measure(What.GPUS, "nvidia.com/gpu"))


@pytest.mark.parametrize("choice", list(policy_limits.OfferKind))
def test_what_a_policy_withholds_is_translated(choice):
    with speaking("x", Pseudo()):
        told = policy_denied(policy_limits.Withheld(POLICY, choice, "1"), {"1": "2"})
    assert untranslated(told.text) == []


@pytest.mark.parametrize("servers", [(), ("",), ("", "1", "2")])
@pytest.mark.parametrize("per", list(Per))
@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("asked", [1, 2, 9 * GIB, GIB])
def test_every_limit_that_a_server_breaks_is_translated(measure, per, servers, asked):
    standing = Standing(POLICY, Limit(per, measure, 1 if asked < GIB else 8 * GIB), "1", 1, servers)
    with speaking("x", Pseudo()):
        denial = policy_limits.OverLimit(standing, asked)
        told = policy_denied(denial, {"1": "2"})
        state = messages.state_text(denied(None, denial))
        uncounted = policy_denied(policy_limits.Uncounted("no word of this"), {})
    assert untranslated(told.text) == []
    assert untranslated(uncounted.text) == []
    assert untranslated(f"{state.word} {state.detail}") == []
