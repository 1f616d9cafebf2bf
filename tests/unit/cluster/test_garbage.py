"""What the hub has when it starts costs no later collection, and nothing leaks."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.each_python

# Each test has a process of its own: pytest's own objects must not be frozen.
BEGIN = """
import gc, weakref
from gpuspawner.cluster import garbage

class It:
    pass

def cycle():
    it = It()
    it.itself = it
    return weakref.ref(it)

modules = [[] for _ in range(200_000)]
"""

TESTS = {
    "what there is isn't looked through any more": """
garbage.freeze()
assert gc.get_freeze_count() > 200_000
assert len(gc.get_objects()) < 1_000
""",
    "a cycle that is made later is collected": """
garbage.freeze()
later = cycle()
gc.collect()
assert later() is None
""",
    "a cycle that is garbage already is collected": """
before = cycle()
garbage.freeze()
assert before() is None
""",
    "a frozen object outside of a cycle is freed": """
it = It()
frozen = weakref.ref(it)
garbage.freeze()
del it
assert frozen() is None
""",
    "what a second hub of the process leaves behind is collected": """
garbage.freeze()
second = cycle()
garbage.freeze()
gc.collect()
assert second() is None
""",
    "what has become garbage since the last collection is collected early": """
gc.set_threshold(10**9)
new = cycle()
garbage.collect_young()
assert new() is None
""",
    "if the administrator has set the collector's threshold to zero, nothing happens": """
gc.set_threshold(0)
before, new = gc.get_freeze_count(), cycle()
garbage.freeze()
garbage.collect_young()
assert gc.get_freeze_count() == before
assert new() is not None
""",
    "if the administrator has disabled the collector, nothing happens": """
gc.disable()
before, new = gc.get_freeze_count(), cycle()
garbage.freeze()
garbage.collect_young()
assert gc.get_freeze_count() == before
assert new() is not None
assert not gc.isenabled()
""",
    "full collections don't wait for as many new objects as there were old ones": """
garbage.freeze()
generations = set()
gc.callbacks.append(lambda phase, told: generations.add(told["generation"]))
new = [[] for _ in range(20_000)]
for _ in range(300_000):
    cycle()
assert 2 in generations
""",
}


# Python 3.14 has no full collections.
RUN = [it for it in TESTS if sys.version_info < (3, 14) or not it.startswith("full collections")]


@pytest.mark.parametrize("code", [TESTS[it] for it in RUN], ids=RUN)
def test_freezing(code: str) -> None:
    command = [sys.executable, "-c", BEGIN + code]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert not done.returncode, done.stderr
