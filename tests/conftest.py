"""What holds for every test."""

from hypothesis import HealthCheck, settings

import tests.quick_imports  # noqa: F401, for what it does to later imports

# A machine that is busy with other tests is slow, not wrong.
settings.register_profile("gpuspawner", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gpuspawner")

pytest_plugins = [
    "pytester",
    "tests.fixtures.bare_cluster",
    "tests.fixtures.cluster",
    "tests.fixtures.skips",
]
