"""The parts of sentences: amounts, devices and profiles in words, and the message they make."""

import msgspec
from markupsafe import Markup

from gpuspawner.kube.quantity import format_bytes
from gpuspawner.kube.quoting import one_line
from gpuspawner.language import ENGLISH, N_, direction, language_tag, listed, ngettext, sentences
from gpuspawner.language import gettext as _
from gpuspawner.offers.grant import Grant

_HUGE = "hugepages-"  # and the size of the pages
_AMOUNTS = {
    "memory": N_("{amount} of memory"),
    "storage": N_("{amount} of storage"),
    "ephemeral-storage": N_("{amount} of disk space"),
    "cpu": N_("{amount} of CPU"),
}


class Message(msgspec.Struct, frozen=True):
    """A message for users: as text for pages that show no HTML, and as safe, inline HTML."""

    text: str
    html: Markup

    @classmethod
    def of(cls, lead: str, *rest: str) -> "Message":
        """Make a message of plain sentences; the first one is the most important."""
        text = sentences(lead, *rest)
        html = Markup("<strong>{}</strong>{}").format(lead, text[len(lead) :])
        return cls(text, in_language(html))


def in_language(html: Markup) -> Markup:
    """Name the language of a part of the hub's own pages, which are in English."""
    if language_tag() == ENGLISH or not html:
        return html
    part = Markup('<span lang="{}" dir="{}">{}</span>')
    return part.format(language_tag(), direction(), html)


def memory(count: int) -> str:
    """Name a number of bytes: `16 GiB`."""
    text = format_bytes(count)
    number = text.rstrip("KMGTPEi")
    if number != text:
        return f"{number} {text[len(number) :]}B"
    return ngettext("{count} byte", "{count} bytes", count).format(count=count)


def rough_size(count: int) -> str:
    """Name a large number of bytes roughly, as registries and disks count: `12 GB`, `850 MB`."""
    megabytes = max(1, round(count / 10**6))
    if megabytes < 1000:
        return _("{count} MB").format(count=megabytes)
    gigabytes = round(count / 10**9, 1)
    return _("{count} GB").format(count=f"{gigabytes if gigabytes < 10 else round(gigabytes):g}")


def cores(millicores: int) -> str:
    """Name an amount of CPU: `2 cores`, `0.5 cores`."""
    # Languages differ in the plural of a fraction. Here it is that of two: "0.5 cores".
    number = millicores // 1000 if millicores % 1000 == 0 else 2
    text = ngettext("{count} core", "{count} cores", number)
    return text.format(count=f"{millicores / 1000:g}")


def figure(resource: str, count: int) -> str:
    """Name an amount without its resource: `16 GiB`, `2 cores`, `4`."""
    match resource:
        case "memory" | "storage" | "ephemeral-storage":
            return memory(count)
        case "cpu":
            return cores(count)
        case _:
            return memory(count) if resource.startswith(_HUGE) else str(count)


def amount(resource: str, count: int) -> str:
    """Name an amount with its resource: `16 GiB of memory`."""
    if resource in _AMOUNTS:
        return _(_AMOUNTS[resource]).format(amount=figure(resource, count))
    if resource.startswith(_HUGE):
        text = _("{amount} in {pages}")
        return text.format(amount=figure(resource, count), pages=device(resource))
    return f"{count} × {resource}"


def amount_named(resource: str, count: int) -> str:
    """Name an amount with its resource: `8 GPUs`."""
    return gpu_count(count) if device(resource) == _("GPU") else amount(resource, count)


def gpu_count(count: int) -> str:
    """Name a number of GPUs: `8 GPUs`."""
    return ngettext("{count} GPU", "{count} GPUs", count).format(count=count)


def most(resource: str, count: int) -> str:
    """Say how much there is at most beside the other choices; "" if there is none."""
    text = _("With your other choices, the most is {amount}.")
    return text.format(amount=amount(resource, count)) if count else ""


def gpus(grant: Grant) -> str:
    """Name the GPUs of a grant: `2 × NVIDIA A100`, or `a server without a GPU`."""
    if grant.accelerator is None:
        return _("a server without a GPU")
    return f"{grant.gpus} × {grant.accelerator.display_name}"


def minutes(count: float) -> str:
    """Name a usual duration: `about 8 minutes`."""
    whole = max(1, round(count))
    return ngettext("about a minute", "about {count} minutes", whole).format(count=whole)


def duration(seconds: int) -> str:
    """Name an exact duration: `8 hours`, `1 hour and 30 minutes`."""
    whole, rest = divmod(round(seconds / 60), 60)
    hours = ngettext("{count} hour", "{count} hours", whole).format(count=whole)
    minutes = ngettext("{count} minute", "{count} minutes", rest).format(count=rest)
    if whole and rest:
        return _("{hours} and {minutes}").format(hours=hours, minutes=minutes)
    if not whole and not rest:
        return _("less than a minute")
    return hours if whole else minutes


def so_far(elapsed: int, usual: str = "") -> str:
    """Say for how many seconds something has been going on, and how long that usually takes."""
    if elapsed < 60:
        time = ngettext("{count} second", "{count} seconds", elapsed).format(count=elapsed)
    else:
        time = duration(elapsed)
    if usual:
        return _("{time} so far; this usually takes {usual}.").format(time=time, usual=usual)
    return _("{time} so far.").format(time=time)


def device(resource: str) -> str:
    """Name a resource for users: `GPU` for ``nvidia.com/gpu``."""
    if resource.startswith(_HUGE):
        size = resource.removeprefix(_HUGE)
        return _("huge pages of {size}").format(size=f"{size[:-2]} {size[-2:]}B")
    vendor, _slash, name = resource.partition("/")
    if name == "gpu" or vendor.startswith("gpu."):
        return _("GPU")
    if name == "gpu.shared":
        return _("shared GPU")
    if name.startswith("mig-"):
        return _("MIG slice {profile}").format(profile=name.removeprefix("mig-"))
    return resource


def profile_named(profile: str, *choices: str) -> str:
    """Name a profile, and the choices within it if there are any."""
    if choices:
        chosen = listed(_("“{choice}”").format(choice=choice) for choice in choices)
        return _("“{profile}” with {choices}").format(profile=profile, choices=chosen)
    return _("“{profile}”").format(profile=profile)


def about(name: str, said: str) -> str:
    """Say something of what a name stands for: a request's option, or a state."""
    return _("{name}: {said}").format(name=name, said=said)


def profile_choice(choice: str, state: str) -> str:
    """Name a choice within a profile, with its availability."""
    return _("{choice} ({state})").format(choice=choice, state=state)


def no_download(choice: str) -> str:
    """Mark an image that each machine has already on which the server could start now."""
    return _("{choice} (no download needed)").format(choice=choice)


def ask() -> str:
    """Say what helps if only other choices can start."""
    return _("Please choose something else, or ask your administrator.")


def ask_alone() -> str:
    """The way out if no other choice helps."""
    return _("Please ask your administrator.")


def tell() -> str:
    """Say who can help if the user can't."""
    return _("Please tell your administrator. The hub's log has the details.")


def last_words(text: str) -> str:
    """Quote the last line that a container has written; "" if it wrote nothing."""
    lines = filter(None, map(one_line, reversed(text.splitlines())))
    last = next(lines, "")
    return _("The last line of its log: “{text}”.").format(text=last) if last else ""


def choose_more_memory() -> str:
    """Say what helps a server that took more memory than it had."""
    return _("Please choose more memory, or ask your administrator.")


def retry() -> str:
    """Say that the problem lasts only seconds."""
    return _("Please try again in a few seconds.")


def retry_or_tell() -> str:
    """Say that the problem may last."""
    return _("Please try again later, or tell your administrator.")
