"""The servers that users can choose."""

from collections.abc import Iterator

import msgspec

from gpuspawner.doctor.hub import Hub
from gpuspawner.gates.what_if import OfferedServer, resolved
from gpuspawner.messages import profile_named
from gpuspawner.offers import options
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.types import Accelerator
from gpuspawner.offers.user_options import GPURequest, user_options
from gpuspawner.profiles.profile_alternatives import ProfileChoice
from gpuspawner.profiles.profile_list import Profile
from gpuspawner.start.request_options import PROFILE

NO_GPU = "a server without a GPU"


async def listed(hub: Hub) -> list[OfferedServer]:
    """Return the smallest server of each offer, and those that need the most of one thing.

    Raises:
        UnusableError: Nobody could start a server.
    """
    if hub.spawner.gpuspawner_gates.sources.accelerators is not None:
        offered = (*hub.runtime.offers.accelerators.values(), None)
        return [server for it in offered for server in _of_accelerator(hub.runtime.offers, it)]
    choice = await resolved(hub, {})
    profiles = choice.listed.profiles if isinstance(choice, ProfileChoice) else ()
    if not profiles:  # there is nothing to choose, so all servers are alike
        return [OfferedServer("a server", "the configuration", {})]
    return [server for profile in profiles for server in _of_profile(profile)]


def _of_accelerator(offers: Offers, accelerator: Accelerator | None) -> Iterator[OfferedServer]:
    key = accelerator.key if accelerator else None
    choices = offers.choices(accelerator)
    memory = sorted(choices.sizes if choices.memory else (), key=lambda it: it.bytes)
    smallest = GPURequest(
        accelerator=key,
        gpus=min(choices.counts),
        memory=memory[0].text if memory else None,
        cpu=options.in_cores(min(choices.cpu)) if choices.cpu else None,
    )
    offer = key or NO_GPU
    place = f"GPUSpawner.accelerators[{key!r}]" if key else "the configuration"
    if accelerator and accelerator.discovered:
        place = "GPUSpawner.accelerators (empty, so the hub reads the nodes' labels)"

    def server(request: GPURequest, more: str = "") -> OfferedServer:
        # The image changes nothing about the place, so the default is as good as any.
        chosen = {k: v for k, v in user_options(request).items() if k != options.IMAGE.name}
        return OfferedServer(offer, place, dict(chosen), more)

    yield server(smallest)
    if len(set(choices.counts)) > 1:
        most = max(choices.counts)
        yield server(msgspec.structs.replace(smallest, gpus=most), f"{most} GPUs")
    if len(memory) > 1:
        text = memory[-1].text
        yield server(msgspec.structs.replace(smallest, memory=text), f"{text} of memory")
    if len(set(choices.cpu)) > 1:
        cores = options.in_cores(max(choices.cpu))
        yield server(msgspec.structs.replace(smallest, cpu=cores), f"{cores} cores")


def _of_profile(profile: Profile) -> Iterator[OfferedServer]:
    place = "KubeSpawner.profile_list"
    offer = f"the profile {profile_named(profile.name)}"
    usual: dict[str, object] = {PROFILE: profile.slug}
    yield OfferedServer(offer, place, usual)
    for option in profile.options:
        for choice in option.choices:
            if not choice.default:
                chosen = {**usual, option.name: choice.key}
                yield OfferedServer(offer, place, chosen, profile_named(choice.name))
