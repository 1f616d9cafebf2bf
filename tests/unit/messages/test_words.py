"""Amounts, devices and profiles in words."""

import pytest

from gpuspawner import messages
from gpuspawner.messages.words import amount, cores, figure, memory, minutes, rough_size


def test_other_resources_have_their_units():
    assert amount("ephemeral-storage", 2**30) == "1 GiB of disk space"
    assert amount("nvidia.com/gpu", 4) == "4 × nvidia.com/gpu"
    assert amount("hugepages-2Mi", 536870912) == "512 MiB in huge pages of 2 MiB"
    assert figure("hugepages-1Gi", 2**31) == "2 GiB"


def test_amounts_have_readable_units():
    assert memory(16 * 1024**3) == "16 GiB"
    assert memory(1536 * 1024**2) == "1.5 GiB"
    assert memory(500) == "500 bytes"
    assert [cores(500), cores(1000), cores(2000)] == ["0.5 cores", "1 core", "2 cores"]
    assert [minutes(0.2), minutes(1), minutes(8)] == [
        "about a minute",
        "about a minute",
        "about 8 minutes",
    ]


@pytest.mark.parametrize(
    ("resource", "name"),
    [
        ("nvidia.com/gpu", "GPU"),
        ("amd.com/gpu", "GPU"),
        ("gpu.intel.com/i915", "GPU"),
        ("nvidia.com/gpu.shared", "shared GPU"),
        ("nvidia.com/mig-1g.5gb", "MIG slice 1g.5gb"),
        ("example.com/fpga", "example.com/fpga"),
        ("hugepages-2Mi", "huge pages of 2 MiB"),
    ],
)
def test_a_device_has_a_name_for_users(resource, name):
    assert messages.device(resource) == name


def test_a_profile_is_named_with_its_choices():
    assert messages.profile_named("GPU") == "“GPU”"
    assert messages.profile_named("GPU", "4", "64 GB") == "“GPU” with “4”, “64 GB”"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (1, "1 MB"),
        (849_600_000, "850 MB"),
        (999_499_999, "999 MB"),
        (999_500_000, "1 GB"),
        (4_294_967_296, "4.3 GB"),
        (9_949_999_999, "9.9 GB"),
        (9_960_000_000, "10 GB"),
        (12_884_901_889, "13 GB"),
    ],
)
def test_the_size_of_a_download_is_rough(count, text):
    assert rough_size(count) == text
