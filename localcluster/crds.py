"""The CustomResourceDefinitions of a program that runs beside a control plane."""

from collections.abc import Iterable, Sequence

from localcluster.client import Client, Object, unless_gone
from localcluster.processes import wait_until

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_TIMEOUT = 60.0


class CRDs:
    """The CRDs of one program, from their creation to their end.

    Args:
        owner: the program's name in messages.
    """

    def __init__(self, api: Client, owner: str, crds: Sequence[Object]) -> None:
        self._api = api
        self._owner = owner
        self._crds = crds

    def create(self) -> None:
        """Create them, and wait until the API server serves them."""
        for crd in self._crds:
            self._api.create(_CRDS, crd)
        wait_until(
            self._are_established, [], _TIMEOUT, f"the API server knows {self._owner}'s CRDs"
        )

    def delete(self) -> None:
        """Delete them, whose objects must be gone.

        The API server's own clean-up of a CRD's objects may wait for more than a minute, if it
        can't list them at once. So the CRDs go without a clean-up.
        """
        for crd in self._crds:
            path = f"{_CRDS}/{crd['metadata']['name']}"
            self._api.delete(path)
            with unless_gone():
                self._api.patch(path, {"metadata": {"finalizers": []}})
        wait_until(lambda: not self._present(), [], _TIMEOUT, f"{self._owner}'s CRDs are gone")

    def _are_established(self) -> bool:
        found = self._present()
        return len(found) == len(self._crds) and all(holds(it, "Established") for it in found)

    def _present(self) -> list[Object]:
        names = {crd["metadata"]["name"] for crd in self._crds}
        return [crd for crd in self._api.items(_CRDS) if crd["metadata"]["name"] in names]


def delete_all(api: Client, collections: Iterable[str], finalizers: str) -> bool:
    """Delete all objects of these collections, whose finalizers nobody serves any more.

    Args:
        api: a client with every right.
        collections: their paths, in all namespaces.
        finalizers: how the names of these finalizers begin.

    Returns:
        Whether none was left. The API server may still have been busy with the last requests of the
        program that ended, so once isn't enough.
    """
    left = [(path_of(path, item), item) for path in collections for item in api.items(path)]
    for path, item in left:
        free(api, path, item, finalizers)
        with unless_gone():
            api.delete(path)
    return not left


def free(api: Client, path: str, item: Object, finalizers: str) -> None:
    """Remove the finalizers whose names begin so."""
    present = item["metadata"].get("finalizers", [])
    others = [name for name in present if not name.startswith(finalizers)]
    if len(others) < len(present):
        with unless_gone():
            api.patch(path, {"metadata": {"finalizers": others}})


def path_of(collection: str, item: Object) -> str:
    """Return the path of an object of a collection."""
    base, _, plural = collection.rpartition("/")
    namespace = item["metadata"].get("namespace")
    inside = f"{base}/namespaces/{namespace}/{plural}" if namespace else collection
    return f"{inside}/{item['metadata']['name']}"


def holds(item: Object, condition: str) -> bool:
    """Whether a condition of an object is true."""
    conditions = item.get("status", {}).get("conditions") or []
    return any(c["type"] == condition and c["status"] == "True" for c in conditions)
