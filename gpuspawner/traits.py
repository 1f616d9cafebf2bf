"""The traits of GPUSpawner; their help text is the reference documentation.

They stand here and not in the class, so that each can be read beside its neighbours;
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
"""The traits that are offers: the same for everybody, and unchanging once the hub has started."""

ENFORCE, WARN, OFF = "enforce", "warn", "off"

accelerators = Dict(
    help="""
    The GPU models on offer, each under a key of its own.

    The key is what :attr:`user_options` and the REST API call the model: up to 63 letters, digits,
    ``-``, ``_`` and ``.``. A model needs ``node_selector`` or ``node_affinity``, which say on
    which nodes it is; everything else may be left out::

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
        What people read on the form.
    ``resource``
        The resource that the device plugin reports; ``nvidia.com/gpu`` where left out. Limit and
        request are set to the number chosen, as Kubernetes demands for devices.
    ``counts``
        How many one server may have, in the order of the form; ``[1]`` where left out.
    ``node_selector``
        Labels that a node must have, beside those of ``KubeSpawner.node_selector``.
    ``node_affinity``
        Node selector terms, of which a node must match one. Where ``KubeSpawner`` requires
        terms too, a node must match one of each: the two lists are multiplied.
    ``tolerations``
        Added to ``KubeSpawner.tolerations``.
    ``environment``, ``volumes``, ``volume_mounts``, ``runtime_class``
        Added to the pod for this model only.
    ``shared_memory``
        The size of ``/dev/shm``, which is 64 MB where left out: too little for a PyTorch
        ``DataLoader`` with workers. What a program puts there counts as its memory.
    ``memory_choices``, ``cpu_choices``
        As :attr:`memory_choices` and :attr:`cpu_choices`, for this model instead of those.
    ``default``
        What is taken for ``gpus``, ``image``, ``memory`` and ``cpu`` where a person leaves them
        out; for each the first on offer where it is not named here.
    ``scale_up``
        For a pool of nodes that an autoscaler grows: ``{"max_nodes": 4, "minutes": 8}``. While
        fewer than ``max_nodes`` of its nodes exist, a pod that finds no room is created all the
        same, since a pending pod is what wakes the autoscaler, and the person is told how long a
        node usually takes. Twice these minutes are added to ``start_timeout``.

    Where this is empty the models are discovered from the labels of the nodes that there are. A
    pool that can be empty has no nodes to be discovered by: configure it.

    The offers are the same for everybody and do not change while the hub runs. Profiles and
    ``group_overrides`` cannot change them, and ``profile_list`` cannot be set beside them.

    .. versionadded:: 0.1
    """,
).tag(config=True)

default_accelerator = Unicode(
    None,
    allow_none=True,
    help="""
    Key of the model that is chosen where a person names none; ``""`` for none of them.

    Where it is left out this is the first of :attr:`accelerators`, as ``KubeSpawner`` takes its
    first profile. Of models that were discovered none is chosen.

    .. versionadded:: 0.1
    """,
).tag(config=True)

images = Dict(
    help="""
    The container images on offer, each under a key of its own::

        c.GPUSpawner.images = {
            "base": {"display_name": "Python", "image": "quay.io/jupyter/base-notebook:2026-10-05"},
            "pytorch": {
                "display_name": "PyTorch, CUDA 12",
                "image": "quay.io/jupyter/pytorch-notebook:cuda12-2026-10-05",
                "accelerators": ["a100"],
            },
        }

    ``accelerators`` ties an image to models by their keys, ``None`` among them standing for a
    server without a GPU; an image without it goes with everything. Where this is empty the image
    is ``KubeSpawner.image`` and no choice.

    .. versionadded:: 0.1
    """,
).tag(config=True)

memory_choices: List[object] = List(
    help="""
    The sizes of memory on offer, as Kubernetes writes them: ``["8Gi", "16Gi"]``.

    The size chosen is the limit, and requested as far as :attr:`memory_requested` says: by default
    all of it. Where this is empty memory is no choice and
    ``KubeSpawner.mem_limit`` and ``mem_guarantee`` hold. Mind that ``8G`` is 8·10⁹ bytes here,
    and 8·2³⁰ in JupyterHub's own traits.

    .. versionadded:: 0.1
    """,
).tag(config=True)

cpu_choices: List[object] = List(
    help="""
    The numbers of CPU cores on offer: ``[2, 4]``, or ``["500m", 2]``.

    The number chosen is the limit, and requested as far as :attr:`cpu_requested` says: by default
    all of it. Where this is empty CPU is no choice and
    ``KubeSpawner.cpu_limit`` and ``cpu_guarantee`` hold.

    .. versionadded:: 0.1
    """,
).tag(config=True)

unlisted_image = Dict(
    help=r"""
    Images that may be written in beside :attr:`images`; none where this is empty::

        c.GPUSpawner.unlisted_image = {
            "display_name": "Another image",
            "validation_regex": r"ghcr\.io/our-lab/[a-z0-9-]+:[0-9.]+",
            "validation_message": "an image of ghcr.io/our-lab with a version",
        }

    The keys are those of ``unlisted_choice`` in KubeSpawner's profiles. The expression has to match
    the *whole* reference, which KubeSpawner asks of its beginning only. What is written in is run:
    leave no part of the registry's name open. Write the expression as Python and JavaScript both
    read it, since the options' JSON Schema repeats it. It is matched with what anybody sends, up to
    500 characters. What takes longer than 50 ms is refused.

    .. versionadded:: 0.1
    """,
).tag(config=True)

unlisted_memory = Dict(
    help="""
    Sizes of memory that may be written in beside :attr:`memory_choices`; none where it is empty::

        c.GPUSpawner.unlisted_memory = {"min": "2Gi", "max": "64Gi", "step": "2Gi"}

    ``step`` is ``1Gi`` where it is left out; it counts from ``min``, and makes at most 256 sizes.
    ``display_name`` is what the form calls it. The sizes hold for every accelerator.

    .. versionadded:: 0.1
    """,
).tag(config=True)

memory_requested = Float(
    1.0,
    min=0.01,
    max=1.0,
    help="""
    Which part of the memory chosen is requested; the limit is always all of it.

    With ``0.5`` a server of ``16Gi`` requests ``8Gi``. Twice as many fit on a node then, and where
    all of them use what they may, Kubernetes ends some.

    .. versionadded:: 0.1
    """,
).tag(config=True)

cpu_requested = Float(
    1.0,
    min=0.01,
    max=1.0,
    help="""
    Which part of the CPU chosen is requested; the limit is always all of it.

    .. versionadded:: 0.1
    """,
).tag(config=True)

language = Unicode(
    "",
    help="""
    The language in which people are told, as a tag such as ``"de"``.

    Empty, as it is by default: the first one that a person's browser wants and that there is. The
    languages are the folders of ``gpuspawner/locale``; where there is none, it is English. What
    administrators read, in logs, is always English, and so are the hub's own pages.

    .. versionadded:: 0.1
    """,
).tag(config=True)

cpu_environment = Dict(
    value_trait=Unicode(),
    key_trait=Unicode(),
    default_value={"NVIDIA_VISIBLE_DEVICES": "void"},
    help="""
    Environment variables of servers without a GPU.

    Where the NVIDIA runtime is a node's default, a container without ``NVIDIA_VISIBLE_DEVICES``
    sees every GPU of the node, though it was given none.

    .. versionadded:: 0.1
    """,
).tag(config=True)

keep_cpu_servers_off_accelerators = Bool(
    False,
    help="""
    Whether servers without a GPU stay off the nodes of every one of :attr:`accelerators`.

    For clusters whose GPU nodes have no taint, where such a server could take the memory and CPU
    that a GPU server will need.

    .. versionadded:: 0.1
    """,
).tag(config=True)

preflight = Enum(
    [ENFORCE, WARN, OFF],
    ENFORCE,
    help="""
    What comes of it where the cluster cannot hold a server.

    ``"enforce"``
        The server does not start, and its owner is told why and what there is instead.
    ``"warn"``
        Everything is asked as with ``"enforce"``. What would have been refused is a warning in the
        hub's log and a sentence on the progress page, and the server is started all the same. So
        an administrator can watch the verdicts for a while before they count.
    ``"off"``
        Nothing is asked, neither the view of the cluster nor the API server by a dry run: a server
        starts as with ``KubeSpawner``. The form still tells what is free.

    In each case a choice that is not on offer is refused, and so is a pod or a home directory
    that the API server itself does not take: for a quota, say.

    .. versionadded:: 0.1
    """,
).tag(config=True)

scheduler_version = Unicode(
    None,
    allow_none=True,
    help="""
    The version of kube-scheduler, such as ``"1.36"``, where it is not that of the API server.

    How much a pod holds that is resized while it runs depends on it. A text that is no version
    stands for the newest whose rules are known.

    .. versionadded:: 0.1
    """,
).tag(config=True)

default_filter_schedulers: List[str] = List(
    Unicode(),
    help="""
    Names of more schedulers that filter nodes as kube-scheduler does by default.

    A pod for any other scheduler is *unknown*, and starts unchecked. Zero-to-JupyterHub's
    user-scheduler is a kube-scheduler that changes only the scores: where it is used, list the
    name that the chart gives to ``KubeSpawner.scheduler_name``.

    .. versionadded:: 0.1
    """,
).tag(config=True)
