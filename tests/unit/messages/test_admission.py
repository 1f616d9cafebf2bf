"""Rejections by the API server in sentences: figures with units, and nothing unescaped."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.messages import OnForm, refusal
from gpuspawner.messages.administrators import explain_refusal
from gpuspawner.messages.starts import preview
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.types import Accelerator
from gpuspawner.preflight.decision import Overruled, Reason, Refuse, Start
from gpuspawner.preflight.rejection import (
    Bound,
    Breach,
    Denied,
    Insecure,
    Of,
    OutOfRange,
    OverQuota,
    QuotaDemands,
    QuotaUncounted,
    Rejection,
    Unexplained,
    Use,
    WebhookFailed,
    read,
)

GI = 2**30
T4 = Grant(Accelerator("t4", "NVIDIA T4", "nvidia.com/gpu"), 1)


def refused(cause, of=Of.POD, grant=T4):
    return Refuse(grant, Reason.NOT_ADMITTED, rejection=Rejection(of, cause, "the very words"))


def told(cause, of=Of.POD, grant=T4):
    return refusal(refused(cause, of, grant)).text


QUOTAS = {
    "for GPUs doesn't leave enough: 4 of 4 are in use": Use("requests.nvidia.com/gpu", 1, 4, 4),
    "for CPU is 1 core in total, but your server needs 2 cores": Use("limits.cpu", 2000, 500, 1000),
    "for memory doesn't leave enough: 1 GiB of 2 GiB": Use("requests.memory", GI, GI, 2 * GI),
    "for pods doesn't leave enough: 50 of 50 are in use": Use("pods", 1, 50, 50),
    "for pods doesn't leave enough": Use("count/pods", 1, 50, 50),
    "for amd.com/gpu doesn't leave enough": Use("requests.amd.com/gpu", 1, 4, 4),
    "for disk doesn't leave enough: 1 GiB of 1 GiB": Use("requests.ephemeral-storage", GI, GI, GI),
}


@pytest.mark.parametrize(("figures", "use"), QUOTAS.items())
def test_a_quota_has_readable_units(figures, use):
    assert f"The quota {figures}" in told(OverQuota((use,)))


def test_equal_quotas_of_requests_and_limits_give_one_sentence():
    uses = (Use("requests.memory", GI, GI, GI), Use("limits.memory", GI, GI, GI))

    assert told(OverQuota(uses)).count("The quota") == 1


def test_users_should_try_again_only_if_the_quota_can_become_free():
    in_use, too_much = Use("requests.memory", GI, GI, GI), Use("requests.memory", 2 * GI, 0, GI)

    assert told(OverQuota((in_use,))).endswith("when others have stopped their servers.")
    assert told(OverQuota((too_much,))).endswith(
        "Please choose a smaller server, or ask your administrator for more."
    )
    assert told(OverQuota((in_use,)), Of.HOME).endswith("Please ask your administrator for more.")


@pytest.mark.parametrize("resource", ["pods", "requests.ephemeral-storage", "count/pods"])
def test_users_should_not_choose_less_of_what_nobody_chooses(resource):
    assert told(OverQuota((Use(resource, 2, 0, 1),))).endswith(
        ". Please ask your administrator for more."
    )


BREACHES = {
    "A server can have at most 1 GPU; this one asks for 2 GPUs.": (
        Breach("nvidia.com/gpu", Bound.MAXIMUM, 1, 2),
        Of.POD,
    ),
    (
        "A server can have at most 1 GiB of memory, but a container of this one has no "
        "limit for memory."
    ): (Breach("memory", Bound.MAXIMUM, GI, None), Of.POD),
    (
        "A server must request at least 1 GiB of memory, but a container of this one "
        "requests no memory."
    ): (Breach("memory", Bound.MINIMUM, GI, None), Of.POD),
    "A home directory can have at most 1 GiB of storage; yours needs 2 GiB of storage.": (
        Breach("storage", Bound.MAXIMUM, GI, 2 * GI),
        Of.HOME,
    ),
    "A home directory must have at least 2 GiB of storage; yours has 1 GiB of storage.": (
        Breach("storage", Bound.MINIMUM, 2 * GI, GI),
        Of.HOME,
    ),
}


@pytest.mark.parametrize(("sentence", "case"), BREACHES.items())
def test_a_limit_range_is_named_with_its_bound(sentence, case):
    breach, of = case

    assert told(OutOfRange((breach,)), of).startswith(sentence)


@pytest.mark.parametrize(
    ("cause", "way_out"),
    [
        (QuotaDemands(("limits.memory",)), "The hub's log has the details."),
        (QuotaUncounted(), "try again in a few seconds."),
        (Denied(""), "Please choose something else, or ask your administrator."),
        (WebhookFailed("a"), "Please try again later, or tell your administrator."),
        (Unexplained(), "The hub's log has the details."),
    ],
)
def test_a_rejection_says_who_can_help(cause, way_out):
    assert told(cause).endswith(way_out)


SMALL, LARGE = Breach("cpu", Bound.MINIMUM, 500, 100), Breach("cpu", Bound.MAXIMUM, 500, 900)


@pytest.mark.parametrize(
    ("breaches", "of", "way_out"),
    [
        ([LARGE], Of.POD, "Please choose a smaller server, or ask your administrator for more."),
        ([SMALL], Of.POD, "Please choose more, or ask your administrator."),
        ([LARGE], Of.HOME, "Please ask your administrator for more."),
        ([SMALL], Of.HOME, "The hub's log has the details."),
        ([SMALL, LARGE], Of.POD, "The hub's log has the details."),
        ([Breach("cpu", Bound.MAXIMUM, 1, None)], Of.POD, "The hub's log has the details."),
    ],
)
def test_what_helps_against_a_maximum_differs_from_what_helps_against_a_minimum(
    breaches, of, way_out
):
    assert told(OutOfRange(tuple(breaches)), of).endswith(way_out)


def test_the_log_has_the_words_of_the_api_server():
    assert "the very words" in explain_refusal(refused(Insecure("restricted")))


def test_a_rejection_of_the_whole_server_marks_no_field():
    assert OnForm.of_refusal(refused(Insecure("restricted"))).errors == ()


@given(st.text(max_size=400), st.sampled_from([400, 403, 422, 500]))
def test_text_from_the_api_server_is_escaped(said, status):
    hostile = f"<script>alert(1)</script>{said}"
    for text in (
        f'admission webhook "a" denied the request: {hostile}',
        f'pods "a" is forbidden: exceeded quota: q, requested: {hostile}',
        f'pods "a" is forbidden: maximum {hostile} usage per Pod is 1, but limit is 2',
        f'pods "a" is forbidden: pod rejected: RuntimeClass "{hostile}" not found',
    ):
        rejection = read(status, {"message": text}, Of.POD)
        if rejection is not None:
            message = refusal(Refuse(T4, Reason.NOT_ADMITTED, rejection=rejection))
            assert "<script" not in message.html
            assert "\n" not in message.text


def test_the_form_says_if_refusals_are_only_warnings():
    warned = Start(T4, (Overruled(refused(Insecure("restricted"))),))

    assert preview(warned).text == (
        "The cluster's Pod Security level, restricted, doesn't allow this server. "
        "The hub would start your server anyway."
    )
