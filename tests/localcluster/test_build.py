"""`python -m localcluster build`: what it builds."""

from __future__ import annotations

from pathlib import Path

import pytest

from localcluster import binaries
from localcluster.__main__ import main


@pytest.fixture(autouse=True)
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was built; nothing really is."""
    names: list[str] = []
    for name in ("controlplane", "proxy", "karpenter", "kueue"):
        monkeypatch.setattr(binaries, name, lambda name=name: names.append(name) or Path(name))
    return names


def test_without_names_it_builds_what_each_cluster_and_the_demo_need(built: list[str]) -> None:
    assert main(["build"]) == 0

    assert built == ["controlplane", "proxy"]


def test_it_also_builds_what_is_named(built: list[str]) -> None:
    assert main(["build", "kueue"]) == 0

    assert built == ["controlplane", "proxy", "kueue"]


def test_another_name_is_an_error_that_says_which_there_are(
    built: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["build", "kueeu"])

    assert built == []
    assert "'kueeu' is not one of karpenter, kueue" in capsys.readouterr().err
