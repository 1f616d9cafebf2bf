"""All benchmarks, one after the other: `python -m tests.benchmarks [PART ...]`.

If a part fails, the others still run. The last line names the parts that failed.
"""

import subprocess
import sys
from collections.abc import Iterable

PARTS = (
    "evaluation",
    "kube_scheduler",
    "first_list",
    "startup",
    "stalls",
    "form",
    "open_forms",
    "gpus_page",
    "policies",
    "line",
    "looks",
    "spawning",
    "starts_at_once",
    "failing_starts",
    "growth",
)


def failing(modules: Iterable[str]) -> list[str]:
    """Run each module in its own process; return those that failed."""
    return [module for module in modules if not _runs(module)]


def _runs(module: str) -> bool:
    print(f"\n## {module}\n", flush=True)
    return subprocess.run([sys.executable, "-m", module], check=False).returncode == 0


def main() -> None:
    """Run the named parts, or all; exit with 1 if one failed."""
    parts = sys.argv[1:] or PARTS
    failed = failing(f"{__package__}.{part}" for part in parts)
    if failed:
        sys.exit(f"\n{len(failed)} of {len(parts)} parts failed: {', '.join(failed)}")
    print(f"\nAll {len(parts)} parts ran.")


if __name__ == "__main__":
    main()
