"""How the patches of wrong edits are read."""

from __future__ import annotations

import subprocess

import pytest

from tests.mutations.__main__ import ROOT
from tests.mutations.patches import all_mutations, read

DIFF = """\
diff --git a/gpuspawner/nvml.py b/gpuspawner/nvml.py
--- a/gpuspawner/nvml.py
+++ b/gpuspawner/nvml.py
@@ -1 +1 @@
-one
+two
"""
HEAD = "Broken: Two is one.\nSeen by: tests/unit/test_nvml.py::test_two tests/hub/test_one.py\n"


def test_a_patch_says_what_it_breaks_and_names_the_tests_that_see_it() -> None:
    mutation = read("two", HEAD + DIFF)

    assert mutation.name == "two"
    assert mutation.broken == "Two is one."
    assert mutation.tests == ("tests/unit/test_nvml.py::test_two", "tests/hub/test_one.py")
    assert mutation.files == ("gpuspawner/nvml.py",)
    assert mutation.patch == DIFF


@pytest.mark.parametrize(
    "text",
    [
        "",
        DIFF,
        HEAD,
        "Broken: Two is one.\n" + DIFF,
        "Seen by: tests/unit\nBroken: Two is one.\n" + DIFF,
        "Broken: \nSeen by: tests/unit\n" + DIFF,
        "Broken: Two is one.\nSeen by: \n" + DIFF,
        HEAD + "and more\n" + DIFF,
        HEAD + DIFF.replace("gpuspawner/nvml.py", "tests/unit/test_nvml.py"),
        HEAD + DIFF + DIFF.replace("gpuspawner/nvml.py", "setup.cfg"),
    ],
)
def test_a_patch_that_says_less_or_edits_something_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="two: "):
        read("two", text)


def test_the_tests_that_patches_name_exist() -> None:
    mutations = all_mutations()

    assert mutations
    for mutation in mutations:
        for test in mutation.tests:
            path, _, name = test.partition("::")
            assert (ROOT / path).exists(), mutation.name
            if name:
                assert f"def {name.partition('[')[0]}(" in (ROOT / path).read_text(), mutation.name


def test_each_patch_applies_to_the_package_as_it_is() -> None:
    for mutation in all_mutations():
        tried = subprocess.run(
            ["git", "apply", "--check"], cwd=ROOT, input=mutation.patch, text=True, check=False
        )
        assert tried.returncode == 0, mutation.name
