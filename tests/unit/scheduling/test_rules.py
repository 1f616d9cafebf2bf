import pytest

from gpuspawner.scheduling.rules import DEFAULT_RULES, Resize, Rules


@pytest.mark.parametrize(
    ("version", "resize"),
    [
        ("v1.30.14", Resize.SPEC),
        ("1.32", Resize.SPEC),
        ("v1.33.0-gke.100", Resize.MAX_PER_CONTAINER),
        ("v1.36.2", Resize.MAX_PER_CONTAINER),
        ("v1.37.0-beta.0", Resize.MAX_OF_SUMS),
        ("v1.99", Resize.MAX_OF_SUMS),
    ],
)
def test_a_version_has_its_rules(version, resize):
    assert Rules.of_version(version).resize is resize


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
