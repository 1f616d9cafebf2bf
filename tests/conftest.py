"""Settings and fixtures of all tests."""

from hypothesis import HealthCheck, settings

import tests.quick_imports  # noqa: F401, it speeds up later imports

# Other tests may slow the machine down; that must not fail a test.
settings.register_profile("gpuspawner", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gpuspawner")

pytest_plugins = [
    "pytester",
    "tests.fixtures.bare_cluster",
    "tests.fixtures.cluster",
    "tests.fixtures.hub_logs",
    "tests.fixtures.second_try",
    "tests.fixtures.skips",
    "tests.fixtures.webhooks",
]
