"""Who can have what."""

from traitlets import Callable

from gpuspawner.traits.trait_types import Dict, Union

policies = Union(
    [Dict(), Callable()],
    help="""
    Sets who can have which servers, and how much.

    A dictionary with an entry for each policy, by name::

        c.GPUSpawner.policies = {
            "course": {
                "groups": ["ml-2026"],
                "gpus_per_user": 1,
                "gpus_per_group": 8,
                "lifetime": "4h",
                "explanation": "The course has eight GPUs together.",
            },
            "one-at-a-time": {"except": {"groups": ["staff"]}, "gpu_servers_per_user": 1},
        }

    Every policy that applies to a server counts, and each has to allow it. So the order doesn't
    matter, and one more policy never allows more. To give some people more than others, take them
    out of the policy for the others with ``except``.

    These keys say to which servers a policy applies; without them, it applies to all:

    ``users``, ``groups``, ``roles``
        Lists of names, which can have ``*``, ``?`` and ``[…]`` as in a shell. The policy is for the
        servers of a user who is in one of the lists, or in a group or role of one. Administrators
        have the role ``admin``. The owner of a server counts, also if somebody else starts it.
    ``except``
        The same three keys, and ``servers``: what the policy doesn't apply to.
    ``servers``
        A list of names of servers: ``""`` is the default server, ``"?*"`` every named server, and
        ``"exp-*"`` those whose name begins with ``exp-``. The limits count only these servers.
    ``hours``, ``timezone``
        A list of the times in which the policy applies, such as ``["Mon-Fri 08:00-18:00", "Sat"]``,
        and their time zone; by default ``"UTC"``. Hours such as ``22:00-06:00`` end on the next
        day. A server that runs already goes on running.

    These keys say what the policy leaves on offer:

    ``accelerators``, ``images``, ``profiles``
        Lists of keys of :attr:`accelerators` and :attr:`images`, and of the slugs of profiles. An
        empty list leaves nothing of this kind: ``"accelerators": []`` allows no accelerator. If the
        default isn't in the list, the first key that is left becomes the default. If there is no
        default, policies don't set one. A policy with ``images`` also takes the field of
        :attr:`unlisted_image` from the form.

    These keys are limits. A limit never refuses a server that takes nothing of what it counts:

    ``gpus_per_server``, ``gpus_per_user``, ``gpus_per_group``
        The most GPUs in one server, in all running servers of a user, and in those of each group in
        ``groups``. A number counts all GPUs. A dictionary counts by accelerator, by resource and
        all together: ``{"a100": 1, "nvidia.com/mig-1g.5gb": 4, "all": 4}``. See :attr:`gpu_weights`
        for parts of GPUs. Limits per group need ``groups``.
    ``gpu_servers_per_user``, ``gpu_servers_per_group``
        The most servers with a GPU at a time.
    ``memory_per_server``, ``memory_per_user``, ``memory_per_group``, ``cpu_per_server``, …
        The same for memory and CPU, as the pods request them: ``"64Gi"``, ``8``. They count servers
        without a GPU, too.
    ``lifetime``
        How long a server with a GPU can run, such as ``"90m"``, ``"8h"`` or ``"2d"``. It counts
        from the moment when its node starts it. The shortest lifetime of all policies counts.

    ``idle``
        Stops servers that don't use their GPUs::

            "idle": {"after": "1h", "after_if_others_wait": "20m", "warning": "10m"}

        ``after`` is required: once the GPUs haven't been used for so long, the owner is warned.
        While somebody waits in line for such a GPU, ``after_if_others_wait`` replaces it, which
        can't be longer; by default both are equal. The owner can keep the server ``keeps`` times
        (by default 2), each time for ``kept`` (by default as long as ``after``). Otherwise, when
        the ``warning`` (by default ``"10m"``) is over, jupyterhub-idle-culler 2 stops the server,
        if its ``cull_arbiter_hook`` is ``gpuspawner.use.arbiter.gives_back``. If several policies
        have ``idle``, the strictest value of each key counts. What holds when a server starts holds
        until it ends. The key needs :attr:`gpu_use` with a Prometheus. If :attr:`gpu_use` has a
        ``directory``, ``kept`` can't be longer than its ``days``: a hub that restarts doesn't know
        of older facts. While the use of a server isn't known, the culler's own ``timeout``
        applies to it, unless its owner keeps it.

    ``explanation``
        Your own words for users to whom the policy denies a server. The hub adds the figures.
    ``show_withheld``
        If ``True``, the form shows the accelerators and profiles that the policy doesn't leave on
        offer, marked so and with the explanation. By default, it leaves them out.

    The hub counts its servers' pods by what they request, whatever else is written into them, and
    the servers that are starting. So a pod that has outlived its server counts, and a named server
    that is stopped doesn't. If the hub can't read the pods, it starts no server to which a limit
    per user or per group applies (HTTP 503), because it can't know how much is in use.

    Instead of the dictionary, you can set a function. It gets the spawner and returns such a
    dictionary, or an awaitable of one; the hub calls it at each form and each start. A server whose
    function fails, or doesn't answer within ``start_timeout``, doesn't start. If its
    ``idle`` doesn't fit :attr:`gpu_use`, the log says so once.

    .. versionadded:: 0.1
    """,
).tag(config=True)

gpu_weights = Dict(
    help="""
    Sets how much of a GPU a device of each resource counts in :attr:`policies`.

    A dictionary by resource; the weights are numbers, or fractions as text::

        c.GPUSpawner.gpu_weights = {"nvidia.com/mig-1g.5gb": "1/7", "nvidia.com/gpu.shared": 0.25}

    A device of a resource that isn't in it counts as one GPU if the resource belongs to one of the
    :attr:`accelerators`, or is one that the hub can discover. Other devices don't count.

    .. versionadded:: 0.1
    """,
).tag(config=True)
