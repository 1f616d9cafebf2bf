"""Why no node comes, for users and for administrators."""

import pytest

from gpuspawner.messages import OnForm, profile_refused, refusal
from gpuspawner.messages.administrators import explain_refusal
from gpuspawner.messages.scaling import no_more
from gpuspawner.offers.grant import Grant
from gpuspawner.preflight.decision import Reason, Refuse
from gpuspawner.scaling.outlook import Obstacle, WhyNoNode


def test_a_pool_that_would_help_says_more_than_pools_that_would_not():
    obstacles = (
        Obstacle(WhyNoNode.NO_SUCH_MACHINE, "cpu"),
        Obstacle(WhyNoNode.AT_MAXIMUM, "t4", nodes=4),
    )

    assert no_more(obstacles) == ("No more machines can be added: their number is at its maximum.")


@pytest.mark.parametrize(
    ("whys", "lead", "way_out", "at_field"),
    [
        (
            [WhyNoNode.NO_SUCH_MACHINE, WhyNoNode.TAKEN],
            "“L4” can't start right now.",
            "Please choose something else, or try again later.",
            "Not available right now.",
        ),
        (
            [WhyNoNode.NO_SUCH_MACHINE],
            "“L4” can't start on any machine here.",
            "Please choose something else, or ask your administrator.",
            "Not available.",
        ),
    ],
)
def test_a_pool_without_nodes_that_cannot_grow_now_is_not_called_impossible_for_good(
    whys, lead, way_out, at_field
):
    decision = Refuse(Grant(), Reason.IMPOSSIBLE, obstacles=tuple(map(Obstacle, whys)))

    assert refusal(decision).text.endswith(way_out)
    assert profile_refused(decision, "“L4”", ()).text.startswith(lead)
    assert [it.text for it in OnForm.of_refusal(decision).errors] == [at_field]


def test_a_quota_at_the_cloud_says_who_can_have_it_raised_and_a_stock_out_that_it_passes():
    in_backoff = Obstacle(WhyNoNode.STOCK_OUT)

    assert no_more((in_backoff, Obstacle(WhyNoNode.QUOTA, "t4"))).endswith(
        "quota at the cloud provider is used up. Only an administrator can have it raised."
    )
    assert no_more((in_backoff,)).endswith("has no such machine available right now.")


def test_users_read_neither_names_of_pools_nor_the_autoscaler_s_text():
    decision = Refuse(
        Grant(), Reason.BUSY, obstacles=(Obstacle(WhyNoNode.STOCK_OUT, "<b>t4</b>", "QUOTA 'x'"),)
    )

    assert refusal(decision).text == (
        "No machine can take your server right now. The cloud provider has no such machine "
        "available right now. Please try again a little later."
    )


def test_administrators_read_each_pool_with_the_autoscaler_s_text_on_one_line():
    decision = Refuse(
        Grant(),
        Reason.IMPOSSIBLE,
        obstacles=(
            Obstacle(WhyNoNode.NO_SUCH_MACHINE, "cpu"),
            Obstacle(WhyNoNode.AT_MAXIMUM, "t4", nodes=4),
            Obstacle(WhyNoNode.REFUSED, detail="no\nidea"),
        ),
        scheduler_message="0/1 nodes are available: 1 Insufficient memory.",
    )

    line = explain_refusal(decision)

    assert "pool cpu: no-such-machine; pool t4: at-maximum, 4 node(s); no new node: refused" in line
    assert "\n" not in line
