"""Why a volume isn't attached or mounted; an id with a number names the public thread."""

import pytest

from gpuspawner.launch.trouble import About, Fault, Kind
from gpuspawner.launch.volume_faults import of_volume

PV = "pvc-5573a8c6-42f7-490d-8482-c50384ee47c2"
IN_USE = f'Multi-Attach error for volume "{PV}" Volume is already '


@pytest.mark.parametrize(
    ("text", "holders"),
    [
        pytest.param(
            f"{IN_USE}used by pod(s) jupyter-jl102-7bb67f57f6-tr6z2",
            ("jupyter-jl102-7bb67f57f6-tr6z2",),
            id="jupyter-infra/jupyter-k8s#235",
        ),
        pytest.param(
            f"{IN_USE}used by pod(s) jupyter-ann, jupyter-ann--two and 2 pod(s) in different"
            " namespaces",
            ("jupyter-ann", "jupyter-ann--two"),
            id="two and others",
        ),
        pytest.param(f"{IN_USE}used by 2 pod(s) in different namespaces", (), id="others only"),
        pytest.param(
            f"{IN_USE}exclusively attached to one node and can't be attached to another",
            (),
            id="jupyterhub/zero-to-jupyterhub-k8s#2981",
        ),
        pytest.param(f'{IN_USE}attached to node "gpu-1"', ("gpu-1",), id="the node"),
    ],
)
def test_a_volume_in_use_tells_who_has_it(text: str, holders: tuple[str, ...]) -> None:
    assert of_volume(text, "FailedAttachVolume") == [
        Fault(Kind.VOLUME_IN_USE, About(volume=PV), holders=holders)
    ]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param(
            "Unable to attach or mount volumes: unmounted volumes=[etc-gitconfig],"
            " unattached volumes=[home files etc-gitconfig]: timed out waiting for the condition",
            ["etc-gitconfig"],
            id="berkeley-dsep-infra/datahub#3313",
        ),
        pytest.param(
            'Unable to mount volumes for pod "jupyter-nebula_jhub(3728)": timeout expired waiting'
            ' for volumes to attach or mount for pod "jhub"/"jupyter-nebula". list of unmounted'
            " volumes=[volume-nebula]. list of unattached volumes=[volume-nebula]",
            ["volume-nebula"],
            id="zonca/jupyterhub-deploy-kubernetes-jetstream#23",
        ),
        pytest.param(
            'Unable to mount volumes for pod "jupyter-ablekh_sbdh(f5f5)": timeout expired waiting'
            ' for volumes to attach/mount for pod "sbdh"/"jupyter-ablekh". list of'
            " unattached/unmounted volumes=[volume-ablekh]",
            ["volume-ablekh"],
            id="jupyterhub/zero-to-jupyterhub-k8s#628",
        ),
        pytest.param(
            "Unable to attach or mount volumes: unmounted volumes=[a b], unattached volumes=[],"
            " failed to process volumes=[]: context deadline exceeded",
            ["a", "b"],
            id="1.36",
        ),
        pytest.param("unmounted volumes=[]", [""], id="none"),
    ],
)
def test_each_volume_that_is_waited_for_is_named(text: str, names: list[str]) -> None:
    assert of_volume(text, "FailedMount") == [
        Fault(Kind.VOLUME_WAITS, About(volume=it)) for it in names
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            'MountVolume.SetUp failed for volume "etc-gitconfig" : secret "user-etc-gitconfig" not'
            " found",
            Fault(Kind.SECRET_MISSING, About(volume="etc-gitconfig", name="user-etc-gitconfig")),
            id="berkeley-dsep-infra/datahub#3313",
        ),
        pytest.param(
            'MountVolume.SetUp failed for volume "course" : configmap "c" not found',
            Fault(Kind.CONFIG_MAP_MISSING, About(volume="course", name="c")),
            id="configmap",
        ),
        pytest.param(
            f'MountVolume.SetUp failed for volume "{PV}" : applyFSGroup failed for vol x: lstat'
            " /mount/.gsutil: input/output error",
            Fault(Kind.VOLUME_MOUNT, About(volume=PV)),
            id="cal-itp/data-infra#3686",
        ),
        pytest.param(
            "error processing PVC hub/claim-ann: failed to fetch PVC from API server:"
            ' persistentvolumeclaim "claim-ann" not found',
            Fault(Kind.CLAIM_MISSING, About(claim="claim-ann")),
            id="claim",
        ),
        pytest.param("odd", Fault(Kind.VOLUME_MOUNT), id="unknown"),
    ],
)
def test_a_failed_mount_tells_its_cause(text: str, expected: Fault) -> None:
    assert of_volume(text, "FailedMount") == [expected]


def test_a_failed_attachment_is_told_apart() -> None:
    text = (
        f'AttachVolume.Attach failed for volume "{PV}" : timed out waiting for external-attacher of'
        " disk.csi.azure.com CSI driver to attach volume /subscriptions/9da7"
    )

    assert of_volume(text, "FailedAttachVolume") == [Fault(Kind.VOLUME_ATTACH, About(volume=PV))]


def test_a_hostile_list_of_volumes_makes_few_faults() -> None:
    assert len(of_volume(f"unmounted volumes=[{'a ' * 4_000}]")) < 100
