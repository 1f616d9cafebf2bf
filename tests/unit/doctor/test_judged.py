"""What `gpuspawner explain --user` says about the policies, on files."""

import pytest

from tests.unit.makers.files import T4, Files, of_fleet, printed
from tests.unit.makers.policy_pods import container, plain

COURSE = {
    "groups": ["ml-2026"],
    "gpus_per_user": 2,
    "gpus_per_group": 4,
    "lifetime": "4h",
    "explanation": "The course shares four GPUs",
}
EACH = {"gpus_per_server": {"t4": 1}}


def server(user, name, gpus, *groups):
    """A server's pod that was charged to these groups."""
    grant = {"policies": ["course"], "groups": list(groups)} if groups else None
    return plain(user, name, grant=grant, containers=[container(gpu=gpus)])


class Hub:
    """A hub with policies, whose servers are in files."""

    def __init__(self, folder, capsys):
        self.files = Files(folder, of_fleet("on-premises"))
        self.capsys = capsys
        self.configure(f"c.GPUSpawner.policies = { ({'course': COURSE, 'each': EACH})!r}")

    def configure(self, text):
        self.files.configuration.write_text(f"{T4}{text}\n")

    def runs(self, *pods):
        self.files.put("pods", pods)

    def explain(self, *arguments):
        status = self.files.ask("explain", *arguments)
        return status, self.capsys.readouterr().out

    def explain_json(self, *arguments):
        status = self.files.ask("explain", *arguments, "--output", "json")
        return status, printed(self.capsys)


@pytest.fixture
def hub(tmp_path, capsys):
    return Hub(tmp_path, capsys)


ALICE = ("--user", "alice", "--group", "ml-2026")


def test_it_shows_the_policies_that_apply_and_how_far_each_limit_is_used(hub):
    hub.runs(
        server("alice", "train", 1, "ml-2026"),
        server("bob", "", 2, "ml-2026"),
        server("carol", "", 1),  # in no group, as far as her pod says
    )

    status, out = hub.explain("t4", *ALICE)

    assert status == 0
    lines = out.splitlines()
    assert lines[:3] == [
        "t4: the policies allow it to alice.",
        "Policies that apply: course, each.",
        "A server with a GPU ends after 4 hours.",
    ]
    assert [line.split() for line in lines[4:8]] == [
        ["POLICY", "LIMIT", "OF", "USED", "MOST", "SERVERS"],
        ["course", "gpus_per_user", "user", "1", "2", "train"],
        ["course", "gpus_per_group", "group", "ml-2026", "3", "4", "train"],
        ["each", "gpus_per_server['t4']", "server", "-", "1"],
    ]
    assert "t4: there is room on 2 of 6 nodes now." in out
    assert "alice reads: There is room for this right now." in out


def test_a_denial_has_the_words_of_the_hub_and_ends_the_answer(hub):
    hub.runs(server("alice", "train", 1, "ml-2026"), server("alice", "demo", 1, "ml-2026"))

    status, out = hub.explain("t4", *ALICE)

    assert status == 1
    assert out.startswith("t4: the policy course denies it to alice.\n")
    assert (
        "alice reads: The course shares four GPUs. You can have 2 GPUs at a time, and you're using "
        "2: demo and train. Stop one of these servers first.\n"
    ) in out
    assert "there is room" not in out


def test_programs_get_the_same(hub):
    hub.runs(server("alice", "train", 2, "ml-2026"))

    status, told = hub.explain_json("t4", *ALICE, "--server", "exp-1", "--role", "admin")

    assert status == 1
    assert told["outcome"] == "denied"
    assert told["users_read"].startswith("The course shares four GPUs. ")
    limit, *_ = told["policies"].pop("limits")
    assert told["policies"] == {
        "user": "alice", "server": "exp-1", "groups": ["ml-2026"], "roles": ["admin", "user"],
        "applying": ["course", "each"], "lifetime": 4 * 3600, "uncounted": "", "denied": "limit",
        "denied_by": "course",
    }  # fmt: skip
    assert limit == {
        "policy": "course", "limit": "gpus_per_user", "group": "", "used": 2, "most": 2,
        "servers": ["train"],
    }  # fmt: skip


def test_what_is_on_offer_is_judged_for_the_user(hub):
    withheld = {"only-cpu": {"except": {"roles": ["admin"]}, "accelerators": []}}
    hub.configure(f"c.GPUSpawner.policies = {withheld!r}")

    status, told = hub.explain_json("t4", "--user", "alice")
    admin_status, admin_told = hub.explain_json("t4", "--user", "alice", "--role", "admin")

    assert (status, told["users_read"]) == (
        1,
        "NVIDIA T4 isn't offered to you. Please choose something else, or ask your administrator.",
    )
    assert (admin_status, admin_told["outcome"]) == (0, "fits")
    assert admin_told["policies"]["applying"] == []


def test_the_server_s_name_decides_which_policies_apply(hub):
    named = {"named": {"servers": ["?*"], "accelerators": []}}
    hub.configure(f"c.GPUSpawner.policies = {named!r}")

    assert hub.explain("t4", "--user", "alice")[0] == 0
    assert hub.explain("t4", "--user", "alice", "--server", "exp")[0] == 1


def test_a_function_judges_too(hub):
    hub.configure("""
async def policies(spawner):
    assert spawner.name == "exp"
    return {"of-" + spawner.user.name: {"gpus_per_user": len(spawner.user.groups)}}
c.GPUSpawner.policies = policies
""")

    _, told = hub.explain_json("t4", *ALICE, "--server", "exp")

    (limit,) = told["policies"]["limits"]
    assert (limit["policy"], limit["most"]) == ("of-alice", 1)


def test_a_function_that_fails_is_no_answer(hub):
    hub.configure("c.GPUSpawner.policies = lambda spawner: spawner.user.unheard_of")

    assert hub.files.ask("explain", "t4", "--user", "alice") == 3
    assert "GPUSpawner.policies: AttributeError" in hub.capsys.readouterr().err


@pytest.mark.parametrize("spoil", ["missing", "unreadable"])
def test_what_cannot_be_counted_is_unknown(hub, spoil):
    if spoil == "missing":
        (hub.files.folder / "pods.json").unlink()
        why = "there is no "
    else:
        hub.runs({"metadata": {"name": "odd", "namespace": "jhub"}, "spec": {"containers": 7}})
        why = "nobody can tell what the pod jhub/odd takes"

    status, out = hub.explain("t4", *ALICE)

    assert status == 2
    assert "the hub would start it for alice only if it could count" in out
    assert why in out
    assert "alice reads: The hub can't count right now how much is in use." in out
    assert hub.explain_json("t4", *ALICE)[1]["outcome"] == "unknown"


def test_pods_that_have_ended_and_those_of_other_namespaces_do_not_count(hub):
    ended = {**server("alice", "a", 2), "status": {"phase": "Succeeded"}}
    elsewhere = server("alice", "b", 2)
    elsewhere["metadata"]["namespace"] = "other"
    hub.runs(ended, elsewhere)

    assert hub.explain("t4", *ALICE)[0] == 0


def test_a_server_that_runs_already_is_said_to_end_first(hub):
    pod = plain("alice", name="jupyter-alice", containers=[container(gpu=1)], nodeName="t4-0")
    hub.runs(pod)

    status, out = hub.explain("t4", *ALICE)

    assert status == 0
    assert out.startswith("The pod jhub/jupyter-alice exists. This is the answer when ")


def test_without_a_user_policies_are_named_as_not_judged(hub):
    status, out = hub.explain("t4")

    assert status == 0
    assert out.startswith("GPUSpawner.policies aren't judged; to judge them, add --user NAME.\n")
    assert hub.explain_json("t4")[1]["policies"] is None


def test_without_policies_nothing_is_said_of_them(hub):
    hub.configure("")

    assert "olicies" not in hub.explain("t4")[1]
    assert "t4: no policy applies to alice." in hub.explain("t4", "--user", "alice")[1]


@pytest.mark.parametrize(
    ("question", "told"),
    [
        (("t4", "--group", "ml-2026"), "need --user"),
        (("t4", "--server", "exp"), "need --user"),
        (("pod", "jhub/pending", "--user", "alice"), "not a pod"),
    ],
)
def test_a_question_that_makes_no_sense_says_why(hub, question, told):
    assert hub.files.ask("explain", *question) == 3
    assert told in hub.capsys.readouterr().err
