"""The traits that the hub's runtime uses."""

from traitlets.config import Config

from gpuspawner.configuration import check
from gpuspawner.runtime import Runtime
from gpuspawner.scheduling import Rules


def runtime(**traits: object) -> Runtime:
    return Runtime(check(Config(GPUSpawner=traits)))


def test_a_configured_version_of_the_scheduler_decides() -> None:
    view = runtime(scheduler_version="1.30").view

    assert view.state.rules == Rules.of_version("1.30")


def test_an_invalid_version_means_the_newest() -> None:
    view = runtime(scheduler_version="tomorrow's").view

    assert view.state.rules == Rules.of_version("1.37")


def test_schedulers_with_the_default_filters_are_judged_like_the_default_one() -> None:
    view = runtime(scheduler_version="1.36", default_filter_schedulers=["jhub-user-scheduler"]).view

    assert view.state.rules.schedulers == {"default-scheduler", "jhub-user-scheduler"}
