"""What the page of GPUs shows, from what is known."""

from datetime import UTC, datetime, timedelta

import pytest

from gpuspawner.cluster.health import Live, Stale, Unreachable
from gpuspawner.form.render import environment
from gpuspawner.use import gpus_view
from gpuspawner.use.census import AcceleratorGpus, Held, NodeGpus
from gpuspawner.use.gpus_view import ForAdministrators, ForAll, GpuRow, ServerRow
from gpuspawner.use.holders import PAGE, Holder, Query
from gpuspawner.use.idle_servers import GPUUse
from tests.unit.makers.pages import Page

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
AT = "/hub/gpuspawner/gpus"


def holder(owner="ann", **more):
    known = {"server": "", "accelerator": "A100", "gpus": 1, "node": "gpu-1", "since": NOW - HOUR}
    return Holder(owner, **{**known, "used": NOW, **more})


def drawn(more, explained="", said=()):
    figures = ForAll(said, gpus_view.states(), ())
    names = {"page": AT, "file": str, "user": "ann", "xsrf": "x", "explained": explained}
    words = {"stale": "Old.", "login_ended": "Log in."}
    template = environment().get_template("gpus.html")
    return Page(template.render(all=figures, more=more, **names, **words))


def row(it, *, stops=True):
    (made,) = gpus_view.servers([it], Query(), AT, NOW, stops=stops).rows
    return made


def owners(found, **asked):
    query = Query.read(asked.get)
    return [it.owner for it in gpus_view.servers(found, query, AT, NOW, stops=False).rows]


def test_an_accelerator_has_its_name_its_nodes_its_states_and_who_waits():
    found = [
        AcceleratorGpus("a100", "", 3, Held(1, 2, 3, 4, 5, 6)),
        AcceleratorGpus("x/y", "slice", 1, Held(1)),
    ]

    a100, slices = gpus_view.accelerators(found, {"a100": "NVIDIA A100"}, {"a100": 7})

    assert a100 == GpuRow("NVIDIA A100", "", "3", (1, 2, 3, 4, 5, 6, 21), 7)
    assert slices == GpuRow("x/y", "slices", "1", (1, 0, 0, 0, 0, 0, 1), 0)
    assert list(gpus_view.states()) == [*Held._fields, "all"]


def test_of_servers_that_wait_with_a_profile_no_accelerator_is_named():
    found = [AcceleratorGpus("t4", "", 1, Held(1)), AcceleratorGpus("x/y", "", 1, Held(1))]

    by_profile = gpus_view.accelerators(found, {}, {"nvidia.com/gpu": 2, "x/y": 1})
    without_nodes = gpus_view.accelerators(found, {}, {"a100": 2})

    assert [it.line for it in by_profile] == ["", 1]
    assert [it.line for it in without_nodes] == [0, 0]


def test_a_bar_shows_each_state_as_wide_as_its_part():
    (row,) = gpus_view.accelerators([AcceleratorGpus("a", "", 1, Held(1, 2, 0, 0, 0, 1))], {}, {})

    assert list(row.bars) == [("free", 0, 25), ("ours", 25, 50), ("away", 75, 25)]


def test_a_node_names_its_accelerators_or_else_its_resource():
    both = NodeGpus("n", "nvidia.com/gpu", ("a", "b"), "share", Held(2))
    none = NodeGpus("n", "nvidia.com/gpu", (), "", Held(2))

    assert gpus_view.node(both, {"a": "A"}).about == "A, b"
    assert gpus_view.node(both, {}).part == "shares"
    assert gpus_view.node(none, {}).about == "nvidia.com/gpu"


def test_old_figures_say_so():
    assert gpus_view.said(0, Live(0.1)) == ()
    assert gpus_view.said(2, Live(0.1)) == ("2 servers wait in line.",)
    assert "The figures are 2 minutes old." in gpus_view.said(0, Stale(120, "no"))[0]
    assert gpus_view.said(0, Unreachable("no")) == ("The hub can't read the cluster right now.",)


def test_a_hub_that_cannot_read_the_cluster_does_not_say_that_there_are_no_gpus():
    unread = gpus_view.said(0, Unreachable("no"))
    silent, *texts = (it.text for it in drawn(None, said=unread).all("p"))

    assert (silent, texts) == ("", list(unread))
    assert [it.text for it in drawn(None).all("p")] == ["", "The nodes report no GPUs."]


def test_servers_are_sorted_by_what_is_asked_for():
    found = [
        holder("cleo", node="b", since=NOW - 3 * HOUR, used=None),
        holder("ann", node="c", since=None, used=NOW - HOUR, accelerator="T4"),
        holder("bob", node="a", since=NOW - HOUR, used=NOW - 2 * HOUR, gpus=2),
    ]

    assert owners(found) == ["ann", "bob", "cleo"]
    assert owners(found, order="accelerator") == ["bob", "cleo", "ann"]
    assert owners(found, order="node") == ["bob", "cleo", "ann"]
    assert owners(found, order="since") == ["cleo", "bob", "ann"]
    assert owners(found, order="used") == ["bob", "ann", "cleo"]


@pytest.mark.parametrize("order", ["", "password", "__class__", "OWNER"])
def test_an_order_that_there_is_not_is_that_of_owners(order):
    assert owners([holder("bob"), holder("ann")], order=order) == ["ann", "bob"]


@pytest.mark.parametrize("text", ["THESIS", "t4", "gpu-7", "cleo", " cleo "])
def test_a_text_finds_a_part_of_any_name(text):
    sought = holder("cleo", server="thesis", accelerator="T4", node="gpu-7")

    assert owners([holder(), sought], text=text) == ["cleo"]


def test_pages_have_a_hundred_servers_and_lead_to_each_other():
    found = [holder(f"u{it:03}") for it in range(2 * PAGE + 50)]
    query = Query("u", "node", 2)

    page = gpus_view.servers(found, query, AT, NOW, stops=False)

    assert (len(page.rows), page.rows[0].owner, page.said) == (PAGE, "u100", "101 to 200 of 250")
    assert page.before == f"{AT}?text=u&order=node"
    assert page.after == f"{AT}?text=u&order=node&page=3"


def test_reasons_of_refusals_lead_to_their_explanation_if_there_is_one():
    servers = gpus_view.servers([], Query(), AT, NOW, stops=False)
    more = ForAdministrators((("busy", 7),), (), (), servers)

    (linked,) = drawn(more, "https://x.org/help").all("a", href="https://x.org/help#busy")
    (plain,) = (it for it in drawn(more).all("a") if it.text == "busy")

    assert linked.text == "busy"
    assert "href" not in plain.attributes
    assert not drawn(None).all("code")


@pytest.mark.parametrize("page", ["0", "-1", "x", "99", "٣", "9" * 30, "1e3"])
def test_a_page_that_there_is_not_is_the_next_one_there_is(page):
    assert owners([holder()], page=page) == ["ann"]


def test_a_server_says_what_it_has_and_since_when():
    known = [
        holder(gpus=2, server="thesis", use=GPUUse(7200, 0.0)),
        holder("bob", since=None, used=None, use=GPUUse(7200, 0.42)),
    ]

    ann = "ann", "thesis", "2 × A100", "gpu-1", "1 hour", "less than a minute ago"
    bob = "bob", "", "1 × A100", "gpu-1", "starting", ""
    assert gpus_view.servers(known, Query(), AT, NOW, stops=True).rows == (
        ServerRow(*ann, "unused for 2 hours", f"{AT}/stop/ann/thesis"),
        ServerRow(*bob, "up to 42 % in 2 hours", f"{AT}/stop/bob/"),
    )


def test_a_server_that_a_queue_holds_back_says_so_instead_of_starting():
    assert row(holder(since=None, is_queued=True)).since == "in the queue"


def test_names_in_addresses_are_quoted():
    assert row(holder('a/b"<>', server="ü?x")).stop == f"{AT}/stop/a%2Fb%22%3C%3E/%C3%BC%3Fx"


def test_nobody_has_a_button_that_would_do_nothing():
    assert row(holder(), stops=False).stop == ""
    assert row(holder(is_starting=True)).stop == ""


def test_a_button_that_stops_a_server_sends_what_the_page_was_asked_for():
    servers = gpus_view.servers([holder("u")], Query("u", "node"), AT, NOW, stops=True)

    page = drawn(ForAdministrators((), (), (), servers))
    (form,) = page.all("form", method="post")
    sent = [it for it in page.all("input", type="hidden") if it.within(form)]
    assert {it["name"]: it["value"] for it in sent} == {"_xsrf": "x", "text": "u", "order": "node"}
