import pytest

from gpuspawner.scheduling.failures import NoStorage, NoVolume, OtherZone, VolumeElsewhere
from gpuspawner.scheduling.labels import Selector
from tests.unit.makers.objects import judge, node, pod
from tests.unit.makers.storage import LOCAL, NOW, WAIT, claim, uses, volume

ZONE = "topology.kubernetes.io/zone"
NODES = [node("a", labels={"zone": "a", ZONE: "a"}), node("b", labels={"zone": "b", ZONE: "b"})]


def verdict(claims, volumes=(), classes=(WAIT, NOW, LOCAL), nodes=NODES, **more):
    names = [made["metadata"]["name"] for made in claims]
    return judge(
        pod(**uses(*names)),
        *nodes,
        persistentVolumeClaims=claims,
        persistentVolumes=volumes,
        storageClasses=classes,
        **more,
    )


def test_a_pod_fits_only_on_nodes_in_the_affinity_of_its_volume():
    made = verdict([claim(volume="disk")], [volume(zone="a", claim="home")])
    assert made.feasible == ("a",)
    assert made.failures["b"] == (VolumeElsewhere("home", "disk"),)


@pytest.mark.parametrize(("value", "feasible"), [("a", ("a",)), ("a__b", ("a", "b"))])
def test_a_pod_fits_only_on_nodes_in_the_zone_of_its_volume(value, feasible):
    made = verdict([claim(volume="disk")], [volume(labels={ZONE: value}, claim="home")])
    assert made.feasible == feasible
    if feasible == ("a",):
        assert made.failures["b"] == (OtherZone(),)


def test_a_node_without_a_zone_label_accepts_volumes_of_any_zone():
    made = verdict(
        [claim(volume="disk")], [volume(labels={ZONE: "a"}, claim="home")], nodes=[node("c")]
    )
    assert made.feasible == ("c",)


def test_a_beta_zone_label_of_a_volume_matches_the_current_label_of_a_node():
    old = {"failure-domain.beta.kubernetes.io/zone": "a"}
    assert verdict([claim(volume="disk")], [volume(labels=old, claim="home")]).feasible == ("a",)


def test_a_waiting_claim_fits_on_nodes_with_a_free_volume():
    made = verdict([claim(class_="local")], [volume(zone="a", class_="local")])
    assert made.feasible == ("a",)
    assert made.failures["b"] == (NoVolume("home"),)


@pytest.mark.parametrize(
    "unfit",
    [
        {"size": "9Gi"},
        {"class_": "other"},
        {"claim": "somebody"},
        {"accessModes": ["ReadOnlyMany"]},
        {"volumeMode": "Block"},
        {"volumeAttributesClassName": "gold"},
    ],
)
def test_a_claim_does_not_take_an_unsuitable_volume(unfit):
    made = verdict([claim(class_="local")], [volume(**{"class_": "local", **unfit})])
    assert made.feasible == ()


def test_a_volume_reserved_for_the_claim_decides():
    volumes = [
        volume("kept", zone="a", class_="local", claim="home"),
        volume("free", zone="b", class_="local"),
    ]
    assert verdict([claim(class_="local")], volumes).feasible == ("a",)


def test_two_claims_need_two_volumes():
    claims = [claim("one", class_="local"), claim("two", class_="local")]
    both = [volume("x", zone="a", class_="local"), volume("y", zone="a", class_="local")]
    assert verdict(claims, both).feasible == ("a",)
    assert verdict(claims, both[:1]).feasible == ()


def test_the_smallest_claim_takes_the_smallest_volume():
    claims = [claim("big", class_="local", size="20Gi"), claim("small", class_="local")]
    volumes = [
        volume("y", zone="a", class_="local", size="20Gi"),
        volume("x", zone="a", class_="local", size="10Gi"),
    ]
    assert verdict(claims, volumes).feasible == ("a",)


def test_allowed_topologies_limit_where_a_volume_can_be_provisioned():
    expression = {"key": "zone", "values": ["b"]}
    narrow = {**WAIT, "allowedTopologies": [{"matchLabelExpressions": [expression]}]}
    assert verdict([claim()], classes=[narrow]).feasible == ("b",)


def test_a_claim_with_a_selected_node_fits_only_there():
    selected = claim(annotations={"volume.kubernetes.io/selected-node": "b"})
    made = verdict([selected])
    assert made.feasible == ("b",)
    assert made.failures["a"] == (NoVolume("home"),)


def capacity(size, zone, **fields):
    return {
        "metadata": {"name": f"c-{zone}", "namespace": "kube-system"},
        "storageClassName": "wait",
        "nodeTopology": {"matchLabels": {"zone": zone}},
        "capacity": size,
        **fields,
    }


DRIVER = {"metadata": {"name": "csi"}, "spec": {"storageCapacity": True}}


def test_a_new_volume_needs_enough_storage_capacity():
    spaces = [capacity("9Gi", "a"), capacity("100Gi", "b")]
    made = verdict([claim()], csiDrivers=[DRIVER], csiStorageCapacities=spaces)
    assert made.feasible == ("b",)
    assert made.failures["a"] == (NoStorage("home"),)


def test_the_maximum_volume_size_counts_before_the_capacity():
    spaces = [capacity("100Gi", "a", maximumVolumeSize="5Gi")]
    made = verdict([claim()], csiDrivers=[DRIVER], csiStorageCapacities=spaces)
    assert made.feasible == ()


def test_capacity_does_not_matter_for_drivers_that_do_not_report_it():
    quiet = {"metadata": {"name": "csi"}, "spec": {"storageCapacity": False}}
    assert verdict([claim()], csiDrivers=[quiet]).feasible == ("a", "b")
    assert verdict([claim()], csiDrivers=[]).feasible == ("a", "b")


ZONES = [f"z{number}" for number in range(100)]


@pytest.mark.parametrize(
    "storage",
    [
        {"claims": [claim()], "csiStorageCapacities": [capacity("100Gi", it) for it in ZONES]},
        {
            "claims": [claim(class_="local")],
            "volumes": [volume(it, zone=it, class_="local") for it in ZONES],
        },
    ],
)
def test_a_node_is_not_compared_with_the_storage_of_each_other_node(storage, monkeypatch):
    asked = []
    matches = Selector.matches
    monkeypatch.setattr(
        Selector, "matches", lambda self, labels: asked.append(self) or matches(self, labels)
    )
    nodes = [node(it, labels={"zone": it}) for it in ZONES]
    made = verdict(**storage, nodes=nodes, csiDrivers=[DRIVER])
    assert len(made.feasible) == len(ZONES)
    assert len(asked) < 10 * len(ZONES)
