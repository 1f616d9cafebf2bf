"""The hub's handlers that tell or change something about one user's servers."""

import inspect
from functools import partial
from types import SimpleNamespace

import pytest

from gpuspawner.use import gpus_page
from gpuspawner.web import handlers, line
from gpuspawner.web.handlers import AboutAServer
from gpuspawner.web.rate_limits import Questions

SERVED = (*handlers._HANDLERS, *line.HANDLERS, *gpus_page.HANDLERS)


def about_servers():
    """Yield each method of ours that takes a user's name, with its handler."""
    for _, handler, *_ in SERVED:
        for verb in ("get", "post"):
            method = inspect.unwrap(vars(handler).get(verb, len))
            if "user_name" in inspect.signature(method).parameters:
                yield pytest.param(handler, method, id=f"{handler.__name__}.{verb}")


@pytest.mark.parametrize(("handler", "method"), about_servers())
def test_each_address_about_one_users_servers_has_the_limit_per_user(handler, method):
    assert isinstance(handler._questions, Questions)
    assert {"counted", "_questions"} <= set(method.__code__.co_names)


def test_no_two_addresses_share_their_limit():
    limits = [it._questions for _, it, *_ in SERVED if hasattr(it, "_questions")]

    assert len(limits) == len(set(map(id, limits))) == 10


@pytest.mark.parametrize("handler", [handlers.DecisionHandler, handlers.SchemaHandler])
async def test_a_script_s_question_has_policies_that_read_what_the_auth_state_hook_sets(
    handler, course
):
    """The hub has run no hook for a spawner that is new, as after its restart."""

    def tells(spawner, _):
        spawner.userdata = {"gpus": 1}

    spawner = course.spawner(
        lambda it: {"all": {"gpus_per_user": it.userdata["gpus"]}}, auth_state_hook=tells
    )
    answers = []
    asked = SimpleNamespace(
        _questions=Questions(),
        _options=dict,
        request=SimpleNamespace(body=b"{}"),
        sources=lambda *_: spawner.gpuspawner_gates.sources,
        answer=answers.append,
    )
    asked.accelerators = partial(AboutAServer.accelerators, asked)
    method = vars(handler).get("post") or vars(handler)["get"]

    await inspect.unwrap(method)(asked, "alice", "")

    assert len(answers) == 1
