"""The offers: what users can choose. They are the same for all users, and never change."""

from gpuspawner.traits.trait_types import Dict, List, Unicode

OFFERS = (
    "accelerators",
    "images",
    "memory_choices",
    "cpu_choices",
    "default_accelerator",
    "unlisted_image",
    "unlisted_memory",
)
"""The traits of this module."""

accelerators = Dict(
    help="""
    Sets the GPU models that users can choose.

    A dictionary with an entry for each model. Its key is the model's name in :attr:`user_options`
    and the REST API: up to 63 letters, digits, ``-``, ``_`` and ``.``. Each entry needs
    ``node_selector`` or ``node_affinity``, to say which nodes have the model::

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
        The texts on the form; by default the key, and no description.
    ``resource``
        The resource that the device plugin reports; by default ``nvidia.com/gpu``. The chosen
        count is both its request and its limit, as Kubernetes requires for devices.
    ``counts``
        How many GPUs one server can have, in the order of the form; by default ``[1]``.
    ``node_selector``
        Labels that a node must have, in addition to those of ``KubeSpawner.node_selector``.
    ``node_affinity``
        Node selector terms. A node must match at least one of them. If KubeSpawner's
        configuration requires terms too, a node must match one of each.
    ``tolerations``
        Added to ``KubeSpawner.tolerations``.
    ``environment``, ``volumes``, ``volume_mounts``, ``runtime_class``
        Added to the pod, for this model only: variables by name, volumes and mounts as Kubernetes
        writes them, and the name of a RuntimeClass.
    ``shared_memory``
        The size of ``/dev/shm``; by default 64 MB, too little for a PyTorch ``DataLoader`` with
        workers. Its content counts as the server's memory.
    ``memory_choices``, ``cpu_choices``
        Replace :attr:`memory_choices` and :attr:`cpu_choices` for this model.
    ``default``
        The values of ``gpus``, ``image``, ``memory`` and ``cpu`` if a user leaves them out; by
        default the first choice of each.
    ``scale_up``
        For a pool that an autoscaler grows, if the hub can't read how far it grows:
        ``{"max_nodes": 4, "minutes": 8}``. Both are required: the most nodes that the pool can
        have, and how many minutes it usually takes until a new node runs a pod. If several pools
        match the selector, ``max_nodes`` is for all of them together. The autoscaler adds a node
        only when a pod is pending. So while the pool can still get a node that no waiting server
        needs, the hub creates a pod even if no node has room for it. The user reads the
        ``minutes`` until the hub has measured them. The hub adds twice these minutes to
        ``start_timeout``; for a start that waits for a node, it adds at least twenty minutes.

    If the dictionary is empty, the hub discovers the models from the labels of the nodes. It can't
    discover a pool that has no nodes: configure a pool that can be empty. Users can't choose among
    discovered models if the hub has a form of its own, or if a spawner class that isn't derived
    from GPUSpawner reads ``user_options``, as that of BinderHub does. If there are no other offers,
    they can't either if ``extra_resource_limits`` or ``extra_resource_guarantees`` gives GPUs to
    every server, or if ``apply_user_options``, ``options_from_form``, a hook, another function or a
    class derived from GPUSpawner reads options. While
    no node has ever had a GPU and there are no other offers, there is no form.

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

    Each entry needs ``image``. By default, ``display_name`` is the key. ``accelerators`` restricts
    an image to the models with these keys; ``None`` in that list means a server without a GPU.

    Unless the model's ``default`` names another one, the first image that is offered with the
    chosen model is the default. If the dictionary is empty, every server runs
    ``KubeSpawner.image``.

    .. versionadded:: 0.1
    """,
).tag(config=True)

memory_choices = List(
    help="""
    Sets the memory sizes that users can choose.

    A list of sizes as Kubernetes writes them: ``["8Gi", "16Gi"]``. A number without a unit is in
    bytes; less than ``1Mi`` is a mistake. Note that ``8G`` is 8·10⁹ bytes here, but 8·2³⁰ bytes in
    JupyterHub's own traits.

    Unless the model's ``default`` names another one, the first size is the default. The chosen size
    is the server's limit; its request is the fraction in :attr:`memory_requested`. If the list is
    empty, ``KubeSpawner.mem_limit`` and ``mem_guarantee`` apply.

    .. versionadded:: 0.1
    """,
).tag(config=True)

cpu_choices = List(
    help="""
    Sets how many CPU cores users can choose.

    A list of amounts in cores, or as Kubernetes writes them: ``[2, 4]``, or ``["500m", 2]``.

    Unless the model's ``default`` names another one, the first number is the default. The chosen
    number is the server's limit; its request is the fraction in :attr:`cpu_requested`. If the list
    is empty, ``KubeSpawner.cpu_limit`` and ``cpu_guarantee`` apply.

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
        The label of the field on the form; by default *Another image*.
    ``validation_regex``
        Required. The expression has to match the *whole* reference; in KubeSpawner's
        ``unlisted_choice``, matching its beginning is enough. The server runs the image, so leave
        no part of the registry's name open. Python and JavaScript should read the expression in the
        same way, because the options' JSON Schema repeats it. Flags in front, such as ``(?i)``, can
        stay: in the schema they are around a group.
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
    most 256 sizes. ``min`` and ``max`` are required. The sizes are the same for every GPU model and
    without a GPU. ``display_name`` is the field's label; by default *Another memory size*.

    .. versionadded:: 0.1
    """,
).tag(config=True)
