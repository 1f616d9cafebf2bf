"""How long each phase of a start can take, and whether it checks the server's GPUs."""

from functools import partial

from gpuspawner.traits.trait_types import Bool, Float

_seconds = partial(Float, min=1.0)

scheduling_timeout = _seconds(
    60.0,
    help="""
    Sets how long a server can wait until the scheduler has found a node for it, in seconds.

    If pods of lower priority have to end first, GPUSpawner adds the time that they may take. A
    server for which a new node has to come waits for that node instead, as long as the node's
    autoscaler says that it comes, and at most twice the usual time of such a node, or twenty
    minutes if that is longer; see :attr:`autoscaling`. If GPUSpawner can't tell whether a server
    has room, or if :attr:`preflight` is ``"off"``, the server can wait as long as
    ``KubeSpawner.start_timeout``.

    .. versionadded:: 0.1
    """,
).tag(config=True)

preparing_timeout = _seconds(
    None,
    allow_none=True,
    help="""
    Sets how long a server's volumes and images can take once it has a node, in seconds.

    With ``None``, the default, the limit is 600 seconds, or ``KubeSpawner.start_timeout`` if that
    is longer.

    Large images take minutes on a new node. What can't succeed any more, such as an image that
    doesn't exist, ends the start at once.

    After that, ``KubeSpawner.start_timeout`` limits the start of the containers, and
    ``KubeSpawner.http_timeout`` the time until the server answers. The timeout that the hub sees is
    the sum of all these limits.

    .. versionadded:: 0.1
    """,
).tag(config=True)

check_gpus = Bool(
    False,
    help="""
    Checks that a server sees its NVIDIA GPUs before it starts.

    With ``True``, each server with NVIDIA GPUs or MIG slices gets an init container, of the
    server's own image and with the same GPUs. It counts the GPUs with the image's ``python3``. If
    there are fewer than the server was granted, or of another model than the label
    ``nvidia.com/gpu.product`` of its node selector says, the start ends and says so. For half an
    hour, the same user's servers then avoid that machine, if another one has room. The image needs
    ``sh``; without ``python3``, its GPUs aren't checked.

    .. versionadded:: 0.1
    """,
).tag(config=True)
