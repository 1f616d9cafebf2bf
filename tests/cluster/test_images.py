"""What the live view learns of the nodes' images, from a kubelet that pulls them."""

from __future__ import annotations

from functools import partial

from gpuspawner.kube.objects import Manifest
from gpuspawner.preflight.downloads import on_all
from gpuspawner.scheduling.evaluate import fitting_nodes
from localcluster import Fleet, LocalCluster, NodeGroup
from tests.cluster.views import aside, until, viewing
from tests.fixtures.cluster import AddNodes

ROOM = {"cpu": "4", "memory": "8Gi", "pods": "110"}
SIZE = 12_345_678_901


def pod(name: str, node: str, image: str) -> Manifest:
    annotations = {"localcluster/pull-seconds": "0.1", "localcluster/pull-bytes": str(SIZE)}
    return {
        "metadata": {"name": name, "annotations": annotations},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "nodeSelector": {"kubernetes.io/hostname": node},
            "containers": [{"name": "notebook", "image": image}],
        },
    }


async def test_an_image_needs_no_download_once_every_node_with_room_has_pulled_it(
    cluster: LocalCluster, namespace: str, add_nodes: AddNodes
) -> None:
    first, second = add_nodes(Fleet((NodeGroup("pulling", 2, ROOM, {"pulls": "yes"}),)))
    pods = f"/api/v1/namespaces/{namespace}/pods"
    wanted = {"spec": {"nodeSelector": {"pulls": "yes"}, "containers": [{"name": "notebook"}]}}
    lab, version = {"lab": ["images-lab:1"]}, -1

    async with viewing(cluster.kubeconfig) as view:
        assert await view.first_list(60)
        images = view.state.images

        def at_hand() -> frozenset[str]:
            return on_all(images, lab, partial(fitting_nodes, view.state, wanted))

        assert images.size("images-lab:1") is None
        assert at_hand() == set()

        await aside(lambda: cluster.api.create(pods, pod("one", first, "images-lab:1")))
        await until(view, lambda: images.nodes("images-lab:1") == {first})
        assert images.size("docker.io/library/images-lab:1") == SIZE
        assert at_hand() == set()
        version = images.version

        await aside(lambda: cluster.api.create(pods, pod("two", second, "library/images-lab:1")))
        await until(view, at_hand)
        assert images.nodes("images-lab:1") == {first, second}
        assert images.version > version

        await aside(lambda: cluster.api.delete(f"/api/v1/nodes/{second}"))
        await until(view, lambda: images.nodes("images-lab:1") == {first})
