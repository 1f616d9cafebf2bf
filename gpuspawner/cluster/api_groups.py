"""Follows a program's objects, in the version of its API that the API server prefers."""

import asyncio
from collections.abc import Sequence

import msgspec

from gpuspawner.cluster.client import Client, RequestError
from gpuspawner.cluster.following import Access, follow
from gpuspawner.cluster.health import is_gone, is_open
from gpuspawner.cluster.kinds import ObjectKind
from gpuspawner.cluster.reflector import Reflector, Store

AGAIN_SECONDS = 60.0
"""How often it is asked whether the program has been installed or updated."""


class _Version(msgspec.Struct, gc=False, frozen=True):
    version: str = ""


class _Group(msgspec.Struct, gc=False, frozen=True, rename="camel"):
    preferred_version: _Version = _Version()


class ApiGroup:
    """The objects of a program that a cluster may have, or get: of Karpenter or Kueue, for example.

    Args:
        kinds: What to follow of one API group, in any version.
        objects: What is known of them.

    Attributes:
        reflectors: Those that follow the objects, one for each kind; none before the API has them.
    """

    def __init__(self, kinds: Sequence[ObjectKind], objects: Store, access: Access) -> None:
        self._kinds = kinds
        self._objects = objects
        self._access = access
        self.reflectors: list[Reflector] = []
        self._is_asked = False

    @property
    def is_open(self) -> bool:
        """Whether reading has neither succeeded nor failed yet."""
        return not self._is_asked or any(map(is_open, self.reflectors))

    async def follow(self) -> None:
        """Follow the objects forever, while the API server has them.

        An update of the program may bring another version of its API, and take the old one away.
        """
        how = self._objects, self._access.wake, self._access.background
        client, version = Client(self._access.load), ""
        try:
            while True:
                kinds = [it.of(version) for it in self._kinds] if version else []
                self.reflectors = [Reflector(it, *how) for it in kinds]
                self._is_asked |= bool(version)
                following = asyncio.create_task(self._follow())
                try:
                    version = await self._other_than(version, client)
                finally:
                    following.cancel()
                    await asyncio.wait([following])
        finally:
            await client.close()

    async def _follow(self) -> None:
        await asyncio.gather(*(follow(it, self._access) for it in self.reflectors))

    async def _other_than(self, version: str, client: Client) -> str:
        """Wait until the API server prefers another version; return it, "" if it is removed."""
        contact = self._access.contact
        if version:
            await contact.wait(contact.wakes, AGAIN_SECONDS)
        while True:
            wakes = contact.wakes
            found = await self._ask(client)
            if found not in (None, "", version):
                return found
            if found == "" and self._is_gone():
                for kind in self._kinds:
                    self._objects.mark_known(kind.name)
                if version:
                    return ""
            if not version:
                self._is_asked = True
                self._access.wake()
            await contact.wait(wakes, AGAIN_SECONDS)

    def _is_gone(self) -> bool:
        """Whether nothing is followed, or left, of what the API server doesn't have.

        Else it may be a proxy that says so of the group: the watches know better.
        """
        return all(
            is_gone(it) and not any(self._objects.keys(it.kind.name)) for it in self.reflectors
        )

    async def _ask(self, client: Client) -> str | None:
        """Return the preferred version; "" if there is none, and None without an answer."""
        try:
            patience = self._access.backoff.page
            async with client.get(self._kinds[0].group, {}, patience) as response:
                body = await response.read()
            return msgspec.json.decode(body, type=_Group).preferred_version.version or None
        except RequestError as error:
            return "" if error.status == 404 else None
        except msgspec.MsgspecError:
            return None
