"""The traits of GPUSpawner. Their help texts are the reference documentation."""

from functools import partial

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
"""The traits that are offers: the choices, which are the same for all users and never change."""

_fraction = partial(Float, 1.0, min=0.01, max=1.0)

ENFORCE, WARN, OFF = "enforce", "warn", "off"

accelerators = Dict(
    help="""
    Sets the GPU models that users can choose.

    A dictionary with an entry for each model. Its key is the model's name in :attr:`user_options`
    and the REST API: up to 63 letters, digits, ``-``, ``_`` and ``.``. Each
    entry needs ``node_selector`` or ``node_affinity``, to say which nodes have the model::

        c.GPUSpawner.accelerators = {
            "a100": {
                "display_name": "NVIDIA A100",
                "description": "80 GB, for training",
                "counts": [1, 2, 4],
                "node_selector": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"},
                "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
                "shared_memory": "8Gi",
                "memory_choices": ["32Gi", "64Gi"], "cpu_choices": [4, 8],
                "default": {"gpus": 1, "memory": "32Gi", "cpu": 4},
            },
        }

    ``display_name``, ``description``
        The texts on the form.
    ``resource``
        The resource that the device plugin reports; by default ``nvidia.com/gpu``. The chosen
        count is both its request and its limit, as Kubernetes requires for devices.
    ``counts``
        How many GPUs one server can have, in the order of the form; by default ``[1]``.
    ``node_selector``
        Labels that a node must have, in addition to those of ``KubeSpawner.node_selector``.
    ``node_affinity``
        Node selector terms, of which a node must match at least one. If KubeSpawner's
        configuration requires terms too, a node must match one of each.
    ``tolerations``
        Added to ``KubeSpawner.tolerations``.
    ``environment``, ``volumes``, ``volume_mounts``, ``runtime_class``
        Added to the pod, for this model only.
    ``shared_memory``
        The size of ``/dev/shm``; by default 64 MB, too little for a PyTorch ``DataLoader`` with
        workers. Its content counts as the server's memory.
    ``memory_choices``, ``cpu_choices``
        Replace :attr:`memory_choices` and :attr:`cpu_choices` for this model.
    ``default``
        The values of ``gpus``, ``image``, ``memory`` and ``cpu`` if a user leaves them out; by
        default the first choice of each.
    ``scale_up``
        For a pool of nodes that an autoscaler grows: ``{"max_nodes": 4, "minutes": 8}``. While the
        pool has fewer than ``max_nodes`` nodes, the hub creates a pod even if no node has room for
        it, because a pending pod makes the autoscaler add a node. The user reads how many minutes
        that usually takes. The hub adds twice these minutes to ``start_timeout``.

    If the dictionary is empty, the hub discovers the models from the labels of the nodes. It can't
    discover a pool that has no nodes: configure a pool that can be empty.

    The *offers* are everything that users can choose: this trait, :attr:`default_accelerator`,
    :attr:`images`, :attr:`memory_choices`, :attr:`cpu_choices`, :attr:`unlisted_image` and
    :attr:`unlisted_memory`. They are the same for all users while the hub runs: profiles and
    ``group_overrides`` can't change them. You can't set ``profile_list`` together with them.

    .. versionadded:: 0.1
    """,
).tag(config=True)

default_accelerator = Unicode(
    None,
    allow_none=True,
    help="""
    Sets the GPU model of users who don't choose one.

    A key of :attr:`accelerators`, or ``""`` for a server without a GPU; by default the first key.
    A model that the hub discovers is never the default.

    .. versionadded:: 0.1
    """,
).tag(config=True)

images = Dict(
    help="""
    Sets the container images that users can choose.

    A dictionary; its keys are the images' names in :attr:`user_options` and the REST API::

        c.GPUSpawner.images = {
            "base": {"display_name": "Python", "image": "quay.io/jupyter/base-notebook:2026-10-05"},
            "pytorch": {
                "display_name": "PyTorch, CUDA 12",
                "image": "quay.io/jupyter/pytorch-notebook:cuda12-2026-10-05",
                "accelerators": ["a100"],
            },
        }

    ``accelerators`` restricts an image to the models with these keys; ``None`` in it stands for a
    server without a GPU. If the dictionary is empty, every server runs ``KubeSpawner.image``.

    .. versionadded:: 0.1
    """,
).tag(config=True)

memory_choices: List[object] = List(
    help="""
    Sets the memory sizes that users can choose.

    A list of sizes as Kubernetes writes them: ``["8Gi", "16Gi"]``. A number without a unit is in
    bytes. Note that ``8G`` is 8·10⁹ bytes here, but 8·2³⁰ bytes in JupyterHub's own traits.

    The chosen size is the server's limit; its request is the fraction in :attr:`memory_requested`.
    If the list is empty, ``KubeSpawner.mem_limit`` and ``mem_guarantee`` apply.

    .. versionadded:: 0.1
    """,
).tag(config=True)

cpu_choices: List[object] = List(
    help="""
    Sets how many CPU cores users can choose.

    A list of amounts in cores, or as Kubernetes writes them: ``[2, 4]``, or ``["500m", 2]``.

    The chosen number is the server's limit; its request is the fraction in :attr:`cpu_requested`.
    If the list is empty, ``KubeSpawner.cpu_limit`` and ``cpu_guarantee`` apply.

    .. versionadded:: 0.1
    """,
).tag(config=True)

unlisted_image = Dict(
    help=r"""
    Lets users enter the reference of an image that isn't in :attr:`images`.

    A dictionary; by default it is empty, and users can't enter images::

        c.GPUSpawner.unlisted_image = {
            "display_name": "Another image",
            "validation_regex": r"ghcr\.io/our-lab/[a-z0-9-]+:[0-9.]+",
            "validation_message": "an image of ghcr.io/our-lab with a version",
        }

    ``display_name``
        The label of the field on the form.
    ``validation_regex``
        The expression has to match the *whole* reference; in KubeSpawner's ``unlisted_choice``,
        matching its beginning is enough. The server runs the image, so leave no part of the
        registry's name open. Python and JavaScript should read the expression in the same way,
        because the options' JSON Schema repeats it.
    ``validation_message``
        What users can enter, in words; completes *Enter …*. Without it, they read the expression.

    The hub refuses references with more than 500 characters, or that take over 50 ms to match.

    .. versionadded:: 0.1
    """,
).tag(config=True)

unlisted_memory = Dict(
    help="""
    Lets users enter a memory size that isn't in :attr:`memory_choices`.

    A dictionary; by default it is empty, and users can't enter sizes::

        c.GPUSpawner.unlisted_memory = {"min": "2Gi", "max": "64Gi", "step": "2Gi"}

    Users can enter the sizes from ``min`` to ``max`` in steps of ``step`` (by default ``1Gi``), at
    most 256 sizes. They are the same for every GPU model and without a GPU. ``display_name`` is the
    field's label.

    .. versionadded:: 0.1
    """,
).tag(config=True)

memory_requested = _fraction(
    help="""
    Sets how much of the chosen memory Kubernetes reserves for a server.

    A fraction from 0.01 to 1; by default ``1.0``, all of it. The limit is always the whole chosen
    size. With ``0.5``, a server of ``16Gi`` requests ``8Gi``. Then twice as many servers fit on a
    node, but if they use all of it, Kubernetes ends some.

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

language = Unicode(
    "",
    help="""
    Sets the language of the form and messages.

    A language tag, such as ``"de"``. By default it is the first language in the preferences of a
    user's browser that is English or has a compiled catalogue in ``gpuspawner/locale``; if there is
    none, English. The hub's own pages and logs stay in English; the log quotes refusals as users
    read them.

    .. versionadded:: 0.1
    """,
).tag(config=True)

cpu_environment = Dict(
    value_trait=Unicode(),
    key_trait=Unicode(),
    default_value={"NVIDIA_VISIBLE_DEVICES": "void"},
    help="""
    Sets environment variables of servers without a GPU.

    By default they hide a node's GPUs: if the NVIDIA runtime is the node's default, a container
    without ``NVIDIA_VISIBLE_DEVICES`` sees every GPU of the node, although its pod requests none.

    .. versionadded:: 0.1
    """,
).tag(config=True)

keep_cpu_servers_off_accelerators = Bool(
    False,
    help="""
    Keeps servers without a GPU off the nodes of all :attr:`accelerators`.

    Set it to ``True`` if the cluster's GPU nodes have no taint. Otherwise a server without a GPU
    can take the memory and CPU that a GPU server needs.

    .. versionadded:: 0.1
    """,
).tag(config=True)

preflight = Enum(
    [ENFORCE, WARN, OFF],
    ENFORCE,
    help="""
    Sets what the hub does when the cluster has no room for a server.

    ``"enforce"``, the default
        The server doesn't start, and its owner reads why, and what they can have instead.
    ``"warn"``
        The hub starts the server anyway. The refusal is a warning in the hub's log and a sentence
        on the progress page, so an administrator can watch the verdicts before they count.
    ``"off"``
        A server starts as with ``KubeSpawner``, without a check in the view of the cluster or a
        dry run by the API server. The form still shows what is free.

    In each case the hub refuses a choice that isn't among the :attr:`offers <accelerators>`, and a
    pod or a home directory that the API server itself rejects: for example, because of a quota.

    .. versionadded:: 0.1
    """,
).tag(config=True)

scheduler_version = Unicode(
    None,
    allow_none=True,
    help="""
    Sets the version of kube-scheduler, if it isn't the version of the API server.

    A version such as ``"1.36"``. Versions differ in how they count the resources of a pod that
    Kubernetes resizes while it runs. If the text isn't a version, the hub uses the rules of the
    newest version that it knows.

    .. versionadded:: 0.1
    """,
).tag(config=True)

default_filter_schedulers: List[str] = List(
    Unicode(),
    help="""
    Names other schedulers that filter nodes by the rules of kube-scheduler's default profile.

    By default it is empty, and the hub starts pods of other schedulers without checking for room.
    The user-scheduler of Zero to JupyterHub only ranks the nodes differently: if you use it, list
    the name that the chart gives to ``KubeSpawner.scheduler_name``.

    .. versionadded:: 0.1
    """,
).tag(config=True)
