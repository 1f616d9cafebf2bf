"""A container that crashes leaves the end of its log, unless the administrator has decided."""

from __future__ import annotations

from gpuspawner.offers.last_words import with_last_words


def test_each_container_leaves_its_last_words() -> None:
    pod = {"spec": {"containers": [{"name": "a"}], "initContainers": [{"name": "b"}]}}

    spec = with_last_words(pod)["spec"]

    assert spec["containers"] == [
        {"name": "a", "terminationMessagePolicy": "FallbackToLogsOnError"}
    ]
    assert spec["initContainers"][0]["terminationMessagePolicy"] == "FallbackToLogsOnError"
    assert pod["spec"]["containers"] == [{"name": "a"}]


def test_what_the_administrator_has_set_stays() -> None:
    own = {"name": "a", "terminationMessagePolicy": "File"}
    assert with_last_words({"spec": {"containers": [own]}})["spec"]["containers"] == [own]
