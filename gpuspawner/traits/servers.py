"""What every server gets beside its owner's choices, and how long its start can take."""

from functools import partial

from gpuspawner.traits.trait_types import Bool, Dict, Float, Unicode

_fraction = partial(Float, 1.0, min=0.01, max=1.0)

memory_requested = _fraction(
    help="""
    Sets how much of the chosen memory Kubernetes reserves for a server.

    A fraction from 0.01 to 1; by default ``1.0``, all of it. The limit is always the whole chosen
    size. With ``0.5``, a server of ``16Gi`` requests ``8Gi``. Then twice as many servers fit on a
    node, but if they use all of the node's memory, Kubernetes ends some of them.

    .. versionadded:: 0.1
    """,
).tag(config=True)

cpu_requested = _fraction(
    help="""
    Sets how much of the chosen CPU Kubernetes reserves for a server.

    As :attr:`memory_requested`: with ``0.5``, a server with 4 cores requests 2.

    .. versionadded:: 0.1
    """,
).tag(config=True)

cpu_environment = Dict(
    value_trait=Unicode(),
    key_trait=Unicode(),
    default_value={"NVIDIA_VISIBLE_DEVICES": "void"},
    help="""
    Sets environment variables of servers without a GPU.

    By default, ``{"NVIDIA_VISIBLE_DEVICES": "void"}`` hides a node's GPUs: if the NVIDIA runtime is
    the node's default, a container without this variable sees every GPU of the node, although its
    pod requests none. Your dictionary replaces this one, so repeat the variable in it. If a
    ``modify_pod_hook`` gives a server a GPU, the server gets none of these variables.

    These variables replace those of ``KubeSpawner.environment``. But if you set neither this trait
    nor :attr:`accelerators`, an ``NVIDIA_VISIBLE_DEVICES`` of ``KubeSpawner.environment``, of a
    group, of a hook or of your own class stays: without a device plugin, servers get GPUs by it.

    Servers of KubeSpawner's ``profile_list`` don't get these variables. Set them by ``environment``
    in the ``kubespawner_override`` of each profile without a GPU.

    .. versionadded:: 0.1
    """,
).tag(config=True)

keep_cpu_servers_off_accelerators = Bool(
    False,
    help="""
    Keeps servers without a GPU off the nodes of all :attr:`accelerators`.

    Set it to ``True`` if the cluster's GPU nodes have no taint. Otherwise a server without a GPU
    can take the memory and CPU that a GPU server needs. It has no effect on servers of
    KubeSpawner's ``profile_list``: use the profiles' own selectors or affinities. A server that
    gets its GPU from a ``modify_pod_hook`` stays off these nodes, too.

    .. versionadded:: 0.1
    """,
).tag(config=True)

do_not_disrupt = Bool(
    False,
    help="""
    Asks autoscalers to leave a server's node alone, because nothing starts the server again.

    Set it to ``True`` to write two annotations into the pods of servers:
    ``karpenter.sh/do-not-disrupt: "true"``, without which Karpenter ends servers to consolidate
    nodes, and ``cluster-autoscaler.kubernetes.io/safe-to-evict: "false"``. Annotations in
    ``KubeSpawner.extra_annotations`` stay as they are. A node is then kept as long as one of its
    servers runs. The descheduler evicts no pods like those of KubeSpawner, which have no owner.

    .. versionadded:: 0.1
    """,
).tag(config=True)

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
