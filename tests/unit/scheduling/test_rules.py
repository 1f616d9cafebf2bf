import pytest

from gpuspawner.scheduling.rules import DEFAULT_RULES, Rules


@pytest.mark.parametrize(
    ("version", "minor"),
    [
        ("v1.30.14", 30),
        ("1.32", 32),
        ("v1.33.0-gke.100", 33),
        ("v1.36.2", 36),
        ("v1.37.0-beta.0", 37),
        ("v1.99", 99),
    ],
)
def test_a_version_has_its_rules(version, minor):
    assert Rules.of_version(version).minor == minor


@pytest.mark.parametrize("version", ["", "newest", "v2", "1", "1.x", "v1.36 or so", "9" * 99])
def test_an_unparsable_version_gets_the_newest_rules(version):
    assert Rules.of_version(version) == Rules.of_version("1.37")


@pytest.mark.parametrize(
    ("version", "counts"),
    [("1.33", False), ("v1.33.5+k3s1", False), ("v1.33.6@sha256:0", True), ("1.33.13-gke.1", True)],
)
def test_the_patch_release_counts_where_it_is_known(version, counts):
    assert Rules.of_version(version).sidecar_ports is counts


def test_further_schedulers_can_use_the_default_filters():
    rules = Rules.of_version("1.36", schedulers=["user-scheduler"])
    assert rules.schedulers == {"default-scheduler", "user-scheduler"}
    assert DEFAULT_RULES.schedulers == {"default-scheduler"}
