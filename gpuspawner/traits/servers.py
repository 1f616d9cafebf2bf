"""What every server gets beside its owner's choices."""

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
    pod requests none. Your dictionary replaces this one, so repeat the variable in it.

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
    KubeSpawner's ``profile_list``: use the profiles' own selectors or affinities.

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
