import pytest

from gpuspawner.scheduling.failures import NoVolume
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


def test_a_beta_zone_label_of_a_volume_matches_the_current_label_of_a_node():
    old = {"failure-domain.beta.kubernetes.io/zone": "a"}
    assert verdict([claim(volume="disk")], [volume(labels=old, claim="home")]).feasible == ("a",)


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
