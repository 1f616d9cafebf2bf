"""Why a start doesn't come further, in one sentence, and what helps."""

from gpuspawner.kube.quoting import one_line
from gpuspawner.language import N_, ngettext
from gpuspawner.language import gettext as _
from gpuspawner.messages import words
from gpuspawner.offers.grant import Grant
from gpuspawner.troubles.trouble import About, Kind, Trouble

NOTHING = Grant()
"""What a server gets that the hub's own offers don't describe."""

_CAUSES = {
    Kind.IMAGE_MISSING: N_("There is no image “{image}”."),
    Kind.IMAGE_FORBIDDEN: N_(
        "The image “{image}” doesn't exist, or the cluster isn't allowed to download it."
    ),
    Kind.IMAGE_NAME: N_("“{image}” isn't a valid image name."),
    Kind.IMAGE_PLATFORM: N_("The image “{image}” isn't made for this machine's processor."),
    Kind.IMAGE_NEVER_PULLED: N_(
        "The machine doesn't have the image “{image}”, and isn't allowed to download it."
    ),
    Kind.IMAGE_SIGNATURE: N_("The image “{image}” has no valid signature."),
    Kind.REGISTRY_UNREACHABLE: N_("The registry of the image “{image}” can't be reached."),
    Kind.REGISTRY_LIMIT: N_("The registry of the image “{image}” allows no more downloads now."),
    Kind.PULL_SECRET: N_("The cluster has no password for the registry of your server's image."),
    Kind.PULL_FAILED: N_("The image “{image}” can't be downloaded."),
    Kind.PULL_BACK_OFF: N_("The image “{image}” can't be downloaded."),
    Kind.DISK_FULL: N_("The machine's disk is full."),
    Kind.VOLUME_IN_USE: N_("Your files are still in use on another machine."),
    Kind.VOLUME_ATTACH: N_("Your files can't be connected to the machine yet."),
    Kind.VOLUME_MOUNT: N_("Your files can't be connected to the machine yet."),
    Kind.VOLUME_WAITS: N_("Your files can't be connected to the machine yet."),
    Kind.VOLUME_LIMIT: N_("The machine can't connect any more disks."),
    Kind.CLAIM_MISSING: N_("The disk “{name}” of your server doesn't exist."),
    Kind.NETWORK: N_("The machine's network isn't ready for your server."),
    Kind.NODE_SOFTWARE: N_("The machine's container software fails."),
    Kind.SANDBOX: N_("The machine's container software fails."),
    Kind.RUNTIME: N_("The machine isn't set up for GPU servers."),
    Kind.SECRET_MISSING: N_("A part of your server's configuration is missing: “{name}”."),
    Kind.CONFIG_MAP_MISSING: N_("A part of your server's configuration is missing: “{name}”."),
    Kind.KEY_MISSING: N_("A part of your server's configuration is missing: “{name}”."),
    Kind.RUNS_AS_ROOT: N_("The image may run as root, which this hub doesn't allow."),
    Kind.CONTAINER_CONFIG: N_("Your server's container can't be created."),
    Kind.CONTAINER_CREATION: N_("Your server's container can't be created."),
    Kind.POST_START_HOOK: N_("Your server's container can't be created."),
    Kind.DEVICE_TAKEN: N_("The GPU was taken just before your server got it."),
    Kind.DEVICE_BROKEN: N_(
        "The machine can't give your server its GPU: the GPU or its driver is broken."
    ),
    Kind.ONE_SHARE: N_("The machine gives a server one share of a GPU, and yours asks for more."),
    Kind.DEVICES_UNPREPARED: N_(
        "The machine can't give your server its GPU: the GPU or its driver is broken."
    ),
    Kind.GPUS_MISSING: N_("The machine hasn't given your server its GPUs."),
    Kind.GPU_DRIVER: N_("The machine's GPU driver fails, or doesn't work with the image."),
    Kind.NODE_FULL: N_("The machine has refused your server."),
    Kind.NODE_CHANGED: N_("The machine has refused your server."),
    Kind.TOPOLOGY: N_("The machine has refused your server."),
    Kind.NODE_REFUSED: N_("The machine has refused your server."),
    Kind.NODE_PRESSURE: N_(
        "The machine ran short of memory or disk space, so your server was stopped."
    ),
    Kind.EVICTED: N_("The cluster needed your server's place, or its machine."),
    Kind.OVER_LIMIT: N_("Your server used more disk space than it's allowed."),
    Kind.PREEMPTED: N_("Your server had to make room for one with a higher priority."),
    Kind.QUEUE_PREEMPTED: N_(
        "The cluster's queue gave your server's place to one with a higher priority."
    ),
    Kind.QUEUE_RECLAIMED: N_(
        "Your server's place in the cluster was borrowed, and its owners needed it back."
    ),
    Kind.QUEUE_STOPPED: N_("An administrator has stopped the cluster's queue for your server."),
    Kind.QUEUE_EVICTED: N_("The cluster's queue has ended your server."),
    Kind.QUEUE_NEVER: N_("The cluster's queue for your server can never give it what it needs."),
    Kind.QUEUE_SILENT: N_("The cluster's queue doesn't answer."),
    Kind.TAINTED: N_("The machine is being taken out of service."),
    Kind.NODE_SHUTDOWN: N_("The machine is being taken out of service."),
    Kind.NODE_LOST: N_("The machine doesn't answer any more."),
    Kind.DEADLINE: N_("Your server has reached the end of its lifetime."),
    Kind.DELETED: N_("Your server was deleted while it was starting."),
    Kind.STOPPED: N_("An administrator stopped your server."),
    Kind.HUB_RESTARTED: N_("The hub was restarted while your server was starting."),
    Kind.FAILED: N_("Your server has failed."),
    Kind.UNKNOWN: N_("Your server has failed."),
    Kind.NO_SUCH_PROGRAM: N_("The image lacks the program that starts your server."),
    Kind.OUT_OF_MEMORY: N_("Your server ran out of memory while it was starting."),
    Kind.CRASHED: N_("Your server crashed while it was starting."),
    Kind.CRASH_LOOP: N_("Your server crashed while it was starting."),
    Kind.NOT_ALIVE: N_("Your server crashed while it was starting."),
    Kind.ENDED: N_("Your server ended by itself while it was starting."),
    Kind.NOT_READY: N_("Your server isn't ready yet."),
    Kind.UNSCHEDULABLE: N_("No machine has room for your server right now."),
}


def cause(trouble: Trouble, grant: Grant = NOTHING) -> str:
    """Say in one sentence what goes wrong; *grant* is what the server was to get."""
    about = trouble.about
    if trouble.kind is Kind.GPUS_MISSING and about.visible < about.granted:
        return _too_few(about, grant)
    name = one_line(about.name or about.claim)
    return _(_CAUSES[trouble.kind]).format(image=one_line(about.image), name=name)


def _too_few(about: About, grant: Grant) -> str:
    gpus = words.gpus(grant) if grant.accelerator else words.gpu_count(about.granted)
    if not about.visible:
        text = _("The machine should have given your server {gpus}, but none is visible.")
        return text.format(gpus=gpus)
    text = ngettext(
        "The machine should have given your server {gpus}, but only {count} is visible.",
        "The machine should have given your server {gpus}, but only {count} are visible.",
        about.visible,
    )
    return text.format(gpus=gpus, count=about.visible)


_ELSEWHERE = frozenset({
    Kind.DISK_FULL, Kind.VOLUME_LIMIT, Kind.NETWORK, Kind.NODE_SOFTWARE, Kind.SANDBOX,
    Kind.DEVICE_TAKEN, Kind.DEVICE_BROKEN, Kind.DEVICES_UNPREPARED, Kind.GPUS_MISSING,
    Kind.GPU_DRIVER, Kind.RUNTIME, Kind.NODE_FULL, Kind.NODE_CHANGED, Kind.TOPOLOGY,
    Kind.NODE_REFUSED, Kind.NODE_PRESSURE, Kind.EVICTED, Kind.PREEMPTED, Kind.TAINTED,
    Kind.NODE_SHUTDOWN, Kind.NODE_LOST, Kind.DELETED,
})  # fmt: skip
"""Another try may get another machine."""
_QUEUE_AGAIN = (Kind.QUEUE_PREEMPTED, Kind.QUEUE_RECLAIMED, Kind.QUEUE_EVICTED)
_CHOOSE = frozenset(it for it in Kind if it.value.startswith("image-")) | {
    Kind.NO_SUCH_PROGRAM,
    Kind.RUNS_AS_ROOT,
}


def way_out(trouble: Trouble) -> str:
    """Say what the server's owner can do."""
    kind = trouble.kind
    if kind in _CHOOSE:
        return _("Please choose another image, or ask your administrator.")
    if kind is Kind.OUT_OF_MEMORY:
        return words.choose_more_memory()
    if kind is Kind.VOLUME_IN_USE:
        return _("Please stop your other server that uses them, or try again in a few minutes.")
    if kind in _QUEUE_AGAIN:
        return _("Please start your server again: it waits in the queue until its turn comes.")
    if kind in (Kind.QUEUE_NEVER, Kind.ONE_SHARE):
        return words.ask()
    if kind in _ELSEWHERE:
        return _("Please start your server again; it may get another machine.")
    return words.retry_or_tell()
