"""The termination message of a container that ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from localcluster.agent.runtime import Exit
from localcluster.agent.termination import last_words, message

FALLS_BACK = {"terminationMessagePolicy": "FallbackToLogsOnError"}


@pytest.mark.parametrize(
    ("container", "ended", "expected"),
    [
        (FALLS_BACK, Exit(1, output="no licence\n"), "no licence\n"),
        (FALLS_BACK, Exit(0, output="bye\n"), ""),
        ({"terminationMessagePolicy": "File"}, Exit(1, output="no licence\n"), ""),
    ],
)
def test_the_output_is_the_message_of_a_failure_if_its_policy_says_so(
    container: dict[str, str], ended: Exit, expected: str
) -> None:
    assert message(container, ended) == expected


def test_only_the_last_eighty_lines_are_kept() -> None:
    output = "".join(f"{number}\n" for number in range(100))

    assert message(FALLS_BACK, Exit(1, output=output)).split() == [str(n) for n in range(20, 100)]


def test_of_long_lines_only_the_last_bytes_are_kept_and_no_letter_in_part() -> None:
    kept = message(FALLS_BACK, Exit(1, output="é" * 1500 + "!"))

    assert kept == "é" * 1023 + "!"


def test_what_earlier_containers_wrote_is_left_out(tmp_path: Path) -> None:
    log = tmp_path / "notebook.log"
    log.write_text("first run\nsecond run\n")

    assert last_words(log, len("first run\n")) == "second run\n"
