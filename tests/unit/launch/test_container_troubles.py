"""What goes wrong with a container, from the pod and its events together."""

from __future__ import annotations

from gpuspawner.launch.trouble import Exit, Kind
from gpuspawner.launch.troubles import troubles
from tests.unit.launch.found import RUNS, only
from tests.unit.launch.starts import NOTEBOOK, at, ended, start, waiting, warning


def test_a_crash_tells_the_exit_and_the_last_words_beside_the_loop() -> None:
    pod = start(
        node="gpu-1",
        notebook={
            **waiting("CrashLoopBackOff", "back-off 20s restarting failed container=notebook"),
            "restartCount": 2,
            "lastState": ended(1, "Error", "ModuleNotFoundError: No module named 'jupyterhub'"),
        },
    )
    crashed, loop = troubles(pod, [])

    assert (crashed.kind, crashed.attempts, crashed.is_final) == (Kind.CRASHED, 2, False)
    assert crashed.exit == Exit(
        1, 0, "Error", 1, "ModuleNotFoundError: No module named 'jupyterhub'"
    )
    assert crashed.text == "ModuleNotFoundError: No module named 'jupyterhub'"
    assert (loop.kind, loop.attempts) == (Kind.CRASH_LOOP, 2)


def test_a_server_that_runs_after_a_crash_is_ready_only_if_it_says_so() -> None:
    crashed = {"lastState": ended(1), "restartCount": 1}
    running = {"running": {"startedAt": at(80)}}

    for ready in (False, True):
        pod = start(notebook={"state": running, "ready": ready, **crashed})
        assert only(troubles(pod, [])).is_over is ready


def test_a_container_without_memory_is_told() -> None:
    pod = start(notebook={"state": ended(137, "OOMKilled")}, restart_policy="Never")
    trouble = only(troubles(pod, []))

    assert (trouble.kind, trouble.is_final) == (Kind.OUT_OF_MEMORY, True)


def test_a_missing_secret_is_over_once_the_container_runs() -> None:
    failed = warning("Failed", 'Error: secret "a" not found', 5, container=NOTEBOOK)
    config = waiting("CreateContainerConfigError", 'secret "a" not found')
    missing = only(troubles(start(notebook=config), [failed]))

    assert (missing.kind, missing.about.name) == (Kind.SECRET_MISSING, "a")
    assert not missing.is_over
    assert only(troubles(start(notebook=RUNS), [failed])).is_over


def test_an_init_container_that_failed_once_is_over_when_it_is_done() -> None:
    done = {"state": ended(0, "Completed"), "lastState": ended(1), "restartCount": 1}

    assert only(troubles(start(init=done), [])).is_over
