"""The traits of GPUSpawner. Their help texts are the reference documentation.

:class:`gpuspawner.spawner.GPUSpawner` takes them over by name.
"""

from traitlets import Bool, Dict, Enum, Float, List, Unicode

OFFERS = (
    "accelerators",
    "images",
    "memory_choices",
    "cpu_choices",
    "default_accelerator",
    "unlisted_image",
    "unlisted_memory",
)
"""The traits that are offers: the same for all users, and fixed once the hub has started."""

ENFORCE, WARN, OFF = "enforce", "warn", "off"

accelerators = Dict(
    help="""
    The GPU models on offer, each with its own key.

    The key is the model's name in :attr:`user_options` and the REST API: up to 63 letters, digits,
    ``-``, ``_`` and ``.``. A model needs ``node_selector`` or ``node_affinity``, which say on
    which nodes it is. Everything else is optional::

        c.GPUSpawner.accelerators = {
            "a100": {
                "display_name": "NVIDIA A100",
                "description": "80 GB, for training",
                "counts": [1, 2, 4],
                "node_selector": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"},
                "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
                "shared_memory": "8Gi",
                "memory_choices": ["32Gi", "64Gi"],
                "cpu_choices": [4, 8],
                "default": {"gpus": 1, "memory": "32Gi", "cpu": 4},
            },
        }

    ``display_name``, ``description``
        The texts on the form.
    ``resource``
        The resource that the device plugin reports; by default ``nvidia.com/gpu``. Its request
        and limit are both the chosen number, as Kubernetes requires for devices.
    ``counts``
        The numbers that one server may have, in the order of the form; by default ``[1]``.
    ``node_selector``
        Labels that a node must have, in addition to those of ``KubeSpawner.node_selector``.
    ``node_affinity``
        Node selector terms; a node must match at least one of them. If ``KubeSpawner`` requires
        terms too, a node must match one of each: the pod gets every combination.
    ``tolerations``
        Added to ``KubeSpawner.tolerations``.
    ``environment``, ``volumes``, ``volume_mounts``, ``runtime_class``
        Added to the pod, for this model only.
    ``shared_memory``
        The size of ``/dev/shm``; by default 64 MB, which is too little for a PyTorch
        ``DataLoader`` with workers. Its content counts as the server's memory.
    ``memory_choices``, ``cpu_choices``
        Replace :attr:`memory_choices` and :attr:`cpu_choices` for this model.
    ``default``
        The values of ``gpus``, ``image``, ``memory`` and ``cpu`` if a user leaves them out; by
        default the first one on offer.
    ``scale_up``
        For a pool of nodes that an autoscaler grows: ``{"max_nodes": 4, "minutes": 8}``. While
        fewer than ``max_nodes`` of its nodes exist, the hub creates a pod even if it has no room,
        because a pending pod makes the autoscaler add a node. The user reads how long a node
        usually takes. Twice these minutes are added to ``start_timeout``.

    If this is empty, the hub discovers the models from the labels of the nodes. It can't discover
    a pool that has no nodes: configure a pool that can be empty.

    The offers are the same for all users and don't change while the hub runs. Profiles and
    ``group_overrides`` can't change them, and you can't set ``profile_list`` together with them.

    .. versionadded:: 0.1
    """,
).tag(config=True)

default_accelerator = Unicode(
    None,
    allow_none=True,
    help="""
    Key of the model for users who don't choose one; ``""`` for a server without a GPU.

    By default this is the first of :attr:`accelerators`, as ``KubeSpawner`` takes its first
    profile. A discovered model is never the default.

    .. versionadded:: 0.1
    """,
).tag(config=True)

images = Dict(
    help="""
    The container images on offer, each with its own key::

        c.GPUSpawner.images = {
            "base": {"display_name": "Python", "image": "quay.io/jupyter/base-notebook:2026-10-05"},
            "pytorch": {
                "display_name": "PyTorch, CUDA 12",
                "image": "quay.io/jupyter/pytorch-notebook:cuda12-2026-10-05",
                "accelerators": ["a100"],
            },
        }

    ``accelerators`` restricts an image to the models with these keys; ``None`` in it stands for a
    server without a GPU. An image without ``accelerators`` is offered with every model and without
    one. If this is empty, users can't choose the image, which is ``KubeSpawner.image``.

    .. versionadded:: 0.1
    """,
).tag(config=True)

memory_choices: List[object] = List(
    help="""
    The memory sizes on offer, as Kubernetes writes them: ``["8Gi", "16Gi"]``.

    The chosen size is the limit. The request is the part of it that :attr:`memory_requested` says,
    by default all of it. If this is empty, users can't choose the memory, and
    ``KubeSpawner.mem_limit`` and ``mem_guarantee`` apply. Note that ``8G`` is 8·10⁹ bytes here, but
    8·2³⁰ bytes in JupyterHub's own traits.

    .. versionadded:: 0.1
    """,
).tag(config=True)

cpu_choices: List[object] = List(
    help="""
    The numbers of CPU cores on offer: ``[2, 4]``, or ``["500m", 2]``.

    The chosen number is the limit. The request is the part of it that :attr:`cpu_requested` says,
    by default all of it. If this is empty, users can't choose the CPU, and
    ``KubeSpawner.cpu_limit`` and ``cpu_guarantee`` apply.

    .. versionadded:: 0.1
    """,
).tag(config=True)

unlisted_image = Dict(
    help=r"""
    Images that users may enter in addition to :attr:`images`; by default none::

        c.GPUSpawner.unlisted_image = {
            "display_name": "Another image",
            "validation_regex": r"ghcr\.io/our-lab/[a-z0-9-]+:[0-9.]+",
            "validation_message": "an image of ghcr.io/our-lab with a version",
        }

    The keys are those of ``unlisted_choice`` in KubeSpawner's profiles. The expression has to match
    the *whole* reference; in KubeSpawner, matching its beginning is enough. The server runs the
    image, so leave no part of the registry's name open. Write an expression that means the same in
    Python and JavaScript, because the options' JSON Schema repeats it. The hub matches it with all
    values that users send, up to 500 characters. If that takes longer than 50 ms, the hub refuses
    the image.

    .. versionadded:: 0.1
    """,
).tag(config=True)

unlisted_memory = Dict(
    help="""
    Memory sizes that users may enter in addition to :attr:`memory_choices`; by default none::

        c.GPUSpawner.unlisted_memory = {"min": "2Gi", "max": "64Gi", "step": "2Gi"}

    The sizes go from ``min`` to ``max`` in steps of ``step``, by default ``1Gi``; there can be at
    most 256 of them. ``display_name`` is the label of the field on the form. The sizes are offered
    with every accelerator.

    .. versionadded:: 0.1
    """,
).tag(config=True)

memory_requested = Float(
    1.0,
    min=0.01,
    max=1.0,
    help="""
    The part of the chosen memory that a server requests; its limit is always all of it.

    With ``0.5``, a server of ``16Gi`` requests ``8Gi``. Then twice as many servers fit on a node,
    and if all of them use as much as they may, Kubernetes ends some.

    .. versionadded:: 0.1
    """,
).tag(config=True)

cpu_requested = Float(
    1.0,
    min=0.01,
    max=1.0,
    help="""
    The part of the chosen CPU that a server requests; its limit is always all of it.

    .. versionadded:: 0.1
    """,
).tag(config=True)

language = Unicode(
    "",
    help="""
    The language of the form and messages, as a tag such as ``"de"``.

    By default, it is the first language in the browser's preferences that has a folder in
    ``gpuspawner/locale``, or English. Logs are always in English, and so are the hub's own pages.

    .. versionadded:: 0.1
    """,
).tag(config=True)

cpu_environment = Dict(
    value_trait=Unicode(),
    key_trait=Unicode(),
    default_value={"NVIDIA_VISIBLE_DEVICES": "void"},
    help="""
    Environment variables of servers without a GPU.

    If the NVIDIA runtime is a node's default, a container without ``NVIDIA_VISIBLE_DEVICES`` sees
    every GPU of the node, although it has none.

    .. versionadded:: 0.1
    """,
).tag(config=True)

keep_cpu_servers_off_accelerators = Bool(
    False,
    help="""
    Whether servers without a GPU stay off the nodes of all :attr:`accelerators`.

    Set it if the cluster's GPU nodes have no taint. Otherwise a server without a GPU could take the
    memory and CPU that a GPU server needs.

    .. versionadded:: 0.1
    """,
).tag(config=True)

preflight = Enum(
    [ENFORCE, WARN, OFF],
    ENFORCE,
    help="""
    What to do when the cluster has no room for a server.

    ``"enforce"``
        The server doesn't start, and its owner reads why, and what they can have instead.
    ``"warn"``
        The hub checks as with ``"enforce"``, but starts the server even if it would refuse it. The
        refusal is a warning in the hub's log and a sentence on the progress page, so an
        administrator can watch the verdicts for a while before they count.
    ``"off"``
        The hub checks nothing, neither in the view of the cluster nor by a dry run of the API
        server: a server starts as with ``KubeSpawner``. The form still shows what is free.

    In each case the hub refuses a choice that isn't on offer, and a pod or a home directory that
    the API server itself rejects: for example, because of a quota.

    .. versionadded:: 0.1
    """,
).tag(config=True)

scheduler_version = Unicode(
    None,
    allow_none=True,
    help="""
    The version of kube-scheduler, such as ``"1.36"``, if it differs from the API server's.

    It determines how much a pod holds that is resized while it runs. A text that isn't a version
    stands for the newest version whose rules are known.

    .. versionadded:: 0.1
    """,
).tag(config=True)

default_filter_schedulers: List[str] = List(
    Unicode(),
    help="""
    Names of other schedulers that filter nodes as kube-scheduler does by default.

    The verdict on a pod for any other scheduler is *unknown*, and the pod starts unchecked. The
    user-scheduler of Zero to JupyterHub is a kube-scheduler that changes only the scores. If you
    use it, list the name that the chart gives to ``KubeSpawner.scheduler_name``.

    .. versionadded:: 0.1
    """,
).tag(config=True)
