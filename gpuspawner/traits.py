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
"""The traits that are offers: the choices, which are the same for all users and never change."""

ENFORCE, WARN, OFF = "enforce", "warn", "off"

accelerators = Dict(
    help="""
    Sets the GPU models that users can choose.

    A dictionary with an entry for each model. Its key is the model's name in :attr:`user_options`
    and the REST API: up to 63 letters, digits, ``-``, ``_`` and ``.``. Its value is a dictionary
    with ``node_selector`` or ``node_affinity``, which say which nodes have the model. Everything
    else in the value is optional::

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
        The resource that the device plugin reports; by default ``nvidia.com/gpu``. The pod's
        request and limit of it are both the chosen count, as Kubernetes requires for devices.
    ``counts``
        How many GPUs one server can have, in the order of the form; by default ``[1]``.
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
        default the first choice of each.
    ``scale_up``
        For a pool of nodes that an autoscaler grows: ``{"max_nodes": 4, "minutes": 8}``. While the
        pool has fewer than ``max_nodes`` nodes, the hub creates a pod even if no node has room for
        it, because a pending pod makes the autoscaler add a node. The user reads that a node
        usually takes this many minutes. The hub adds twice these minutes to ``start_timeout``.

    If the dictionary is empty, the hub discovers the models from the labels of the nodes. It can't
    discover a pool that has no nodes: configure a pool that can be empty.

    The *offers* are everything that users can choose: this trait, :attr:`default_accelerator`,
    :attr:`images`, :attr:`memory_choices`, :attr:`cpu_choices`, :attr:`unlisted_image` and
    :attr:`unlisted_memory`. They are the same for all users and don't change while the hub runs.
    Profiles and ``group_overrides`` can't change them, and you can't set ``profile_list`` together
    with them.

    .. versionadded:: 0.1
    """,
).tag(config=True)

default_accelerator = Unicode(
    None,
    allow_none=True,
    help="""
    Sets the GPU model of users who don't choose one.

    A key of :attr:`accelerators`, or ``""`` for a server without a GPU. By default it is the first
    key, as ``KubeSpawner`` takes its first profile. A model that the hub discovers is never the
    default.

    .. versionadded:: 0.1
    """,
).tag(config=True)

images = Dict(
    help="""
    Sets the container images that users can choose.

    A dictionary with an entry for each image. Its key is the image's name in :attr:`user_options`
    and the REST API::

        c.GPUSpawner.images = {
            "base": {"display_name": "Python", "image": "quay.io/jupyter/base-notebook:2026-10-05"},
            "pytorch": {
                "display_name": "PyTorch, CUDA 12",
                "image": "quay.io/jupyter/pytorch-notebook:cuda12-2026-10-05",
                "accelerators": ["a100"],
            },
        }

    ``accelerators`` restricts an image to the models with these keys; ``None`` in it stands for a
    server without a GPU. Users can choose an image without ``accelerators`` with every model and
    without a GPU. If the dictionary is empty, users can't choose the image, and every server runs
    ``KubeSpawner.image``.

    .. versionadded:: 0.1
    """,
).tag(config=True)

memory_choices: List[object] = List(
    help="""
    Sets the memory sizes that users can choose.

    A list of sizes as Kubernetes writes them: ``["8Gi", "16Gi"]``. A number without a unit is in
    bytes. Note that ``8G`` is 8·10⁹ bytes here, but 8·2³⁰ bytes in JupyterHub's own traits.

    The chosen size is the limit of the server's memory. The server requests all of it, or the
    fraction in :attr:`memory_requested`. If the list is empty, users can't choose the memory, and
    ``KubeSpawner.mem_limit`` and ``mem_guarantee`` apply.

    .. versionadded:: 0.1
    """,
).tag(config=True)

cpu_choices: List[object] = List(
    help="""
    Sets how many CPU cores users can choose.

    A list of amounts in cores, or as Kubernetes writes them: ``[2, 4]``, or ``["500m", 2]``.

    The chosen number is the limit of the server's CPU. The server requests all of it, or the
    fraction in :attr:`cpu_requested`. If the list is empty, users can't choose the CPU, and
    ``KubeSpawner.cpu_limit`` and ``cpu_guarantee`` apply.

    .. versionadded:: 0.1
    """,
).tag(config=True)

unlisted_image = Dict(
    help=r"""
    Lets users enter the reference of an image that isn't in :attr:`images`.

    A dictionary with a regular expression for the allowed references. By default it is empty, and
    users can't enter images::

        c.GPUSpawner.unlisted_image = {
            "display_name": "Another image",
            "validation_regex": r"ghcr\.io/our-lab/[a-z0-9-]+:[0-9.]+",
            "validation_message": "an image of ghcr.io/our-lab with a version",
        }

    ``display_name``
        The label of the field on the form.
    ``validation_regex``
        The expression. It has to match the *whole* reference; in KubeSpawner's
        ``unlisted_choice``, matching its beginning is enough. The server runs the image, so the
        expression should leave no part of the registry's name open. Python and JavaScript should
        read it in the same way, because the options' JSON Schema repeats it.
    ``validation_message``
        What users can enter, in words; completes *Enter …*. Without it, they read the expression.

    The hub refuses an image if its reference has more than 500 characters, or if matching the
    expression takes longer than 50 ms.

    .. versionadded:: 0.1
    """,
).tag(config=True)

unlisted_memory = Dict(
    help="""
    Lets users enter a memory size that isn't in :attr:`memory_choices`.

    A dictionary with sizes as Kubernetes writes them. By default it is empty, and users can't enter
    sizes::

        c.GPUSpawner.unlisted_memory = {"min": "2Gi", "max": "64Gi", "step": "2Gi"}

    Users can enter the sizes from ``min`` to ``max`` in steps of ``step``, by default ``1Gi``, with
    every GPU model and without a GPU; there can be at most 256 sizes. ``display_name`` is the label
    of the field on the form.

    .. versionadded:: 0.1
    """,
).tag(config=True)

memory_requested = Float(
    1.0,
    min=0.01,
    max=1.0,
    help="""
    Sets how much of the chosen memory Kubernetes reserves for a server.

    A fraction from 0.01 to 1; by default ``1.0``, all of it. The pod requests this fraction, and
    its limit is always the whole chosen size. With ``0.5``, a server of ``16Gi`` requests ``8Gi``.
    Then twice as many servers fit on a node, but if they use all of it, Kubernetes ends some.

    .. versionadded:: 0.1
    """,
).tag(config=True)

cpu_requested = Float(
    1.0,
    min=0.01,
    max=1.0,
    help="""
    Sets how much of the chosen CPU Kubernetes reserves for a server.

    A fraction from 0.01 to 1; by default ``1.0``, all of it. The pod requests this fraction, and
    its limit is always all chosen cores. With ``0.5``, a server with 4 cores requests 2.

    .. versionadded:: 0.1
    """,
).tag(config=True)

language = Unicode(
    "",
    help="""
    Sets the language of the form and messages.

    A language tag, such as ``"de"``. By default, each user gets the first language in the browser's
    preferences that has a folder in ``gpuspawner/locale``, or English. Logs are always in English,
    and so are the hub's own pages.

    .. versionadded:: 0.1
    """,
).tag(config=True)

cpu_environment = Dict(
    value_trait=Unicode(),
    key_trait=Unicode(),
    default_value={"NVIDIA_VISIBLE_DEVICES": "void"},
    help="""
    Sets environment variables of servers without a GPU.

    A dictionary of names and values. By default it hides a node's GPUs: if the NVIDIA runtime is
    the node's default, a container without ``NVIDIA_VISIBLE_DEVICES`` sees every GPU of the node,
    although its pod requests none.

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
        The hub checks in the same way, but starts the server anyway. The refusal is a warning in
        the hub's log and a sentence on the progress page, so an administrator can watch the
        verdicts for a while before they count.
    ``"off"``
        The hub checks nothing, neither in the view of the cluster nor by a dry run of the API
        server: a server starts as with ``KubeSpawner``. The form still shows what is free.

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

    A version such as ``"1.36"``; by default that of the API server. Versions differ in how they
    count the resources of a pod that Kubernetes resizes while it runs. If the text isn't a version,
    the hub uses the rules of the newest version that it knows.

    .. versionadded:: 0.1
    """,
).tag(config=True)

default_filter_schedulers: List[str] = List(
    Unicode(),
    help="""
    Names the other schedulers that choose among the same nodes as kube-scheduler does by default.

    A list of scheduler names; by default it is empty. For pods of schedulers that aren't in it, the
    hub doesn't know whether there is room, and starts them without checking. The user-scheduler of
    Zero to JupyterHub is a kube-scheduler that only ranks the nodes differently. If you use it,
    list the name that the chart gives to ``KubeSpawner.scheduler_name``.

    .. versionadded:: 0.1
    """,
).tag(config=True)
