"""An open form of accelerators."""

from collections.abc import Hashable, Mapping
from typing import Any

from msgspec import msgpack, structs

from gpuspawner import language
from gpuspawner.gates.accelerators import Accelerators
from gpuspawner.kube.objects import Manifest, convert
from gpuspawner.kube.pods import Pod, Volume
from gpuspawner.offers.offers import Offers
from gpuspawner.preflight.availability import what_decides
from gpuspawner.preflight.downloads import containers
from gpuspawner.web.answers import states_of
from gpuspawner.web.stream.open_form import Allowed, Shown


class AcceleratorsForm:
    """As `OpenForm`. KubeSpawner's pod for the owner is made once: its configuration is fixed."""

    def __init__(self, source: Accelerators, stock: Manifest | None, allowed: Allowed) -> None:
        self._source = source
        self._stock = what_decides(stock) if stock else None
        self._allowed = allowed
        self._language = language.language_tag()
        self._pod = convert("Pod", self._stock) if self._stock else None
        self._likeness: object = self._like(source.runtime.offers)

    @classmethod
    async def opened(cls, source: Accelerators) -> "AcceleratorsForm":
        """Open the form.

        Raises:
            Refusal: The administrator's function of policies fails.
        """
        return cls(source, await source.stock_pod(), await Allowed.of(source.policing))

    @property
    def may_change(self) -> bool:
        """As `OpenForm.may_change`."""
        return self._allowed.may_change

    async def renew(self) -> None:
        """As `OpenForm.renew`."""
        await self._allowed.renew()

    def question(self) -> Hashable:
        """As `OpenForm.question`."""
        return self._language, self._likeness, self._labels(), self._allowed.token()

    async def answer(self) -> Shown:
        """As `OpenForm.answer`."""
        language.set_locale(self._language)
        return Shown(states_of(self._source, self._allowed.entitlement, self._stock))

    def _like(self, offers: Offers) -> object:
        """Return what decides of the pod, but for labels; the same for users with pods alike.

        Claims don't count: the form leaves them out.
        """
        if self._stock is None:
            return None
        if not isinstance(self._pod, Pod):
            return self  # like no other
        volumes = [it for it in self._pod.spec.volumes or () if it != Volume(it.name)]
        spec = structs.replace(self._pod.spec, volumes=volumes)
        images = [(it.get("image"), it.get("imagePullPolicy")) for it in containers(self._stock)]
        later = self._source.later
        # The hub's own code may add rules about the other pods of the namespace.
        namespace = self._pod.metadata.namespace if later.has_own_code else ""
        return msgpack.encode((namespace, spec, images, _met(self._stock, offers), later.owner))

    def _labels(self) -> Hashable:
        """Return the pod's labels if they count at this moment, with which it is like no other.

        If they don't, the namespace of KubeSpawner's pod, which each user may have, doesn't count
        either.
        """
        verdicts = self._source.runtime.preflight.verdicts
        is_alone = isinstance(self._pod, Pod) and verdicts.depends_on_labels(self._pod)
        return self if is_alone else None


def _met(stock: Mapping[str, Any], offers: Offers) -> list[Any]:
    """Return the pod's volumes and mounts that accelerators have too: together they may clash."""
    accelerators = offers.accelerators.values()
    volumes: list[Any] = [it for one in accelerators for it in one.volumes]
    mounts: list[Any] = [it for one in accelerators for it in one.volume_mounts]
    names, paths = {it["name"] for it in (*volumes, *mounts)}, {it["mountPath"] for it in mounts}
    spec = stock["spec"]
    mounted = spec["containers"][0].get("volumeMounts") or ()
    return [
        [it for it in spec.get("volumes") or () if it["name"] in names],
        [it for it in mounted if it["mountPath"] in paths],
    ]
