"""Who can wait in line, and in which of Kueue's queues servers wait."""

from gpuspawner.traits.trait_types import Bool, Dict, Unicode, Union

queue = Union(
    [Bool(), Dict()],
    default_value=False,
    help="""
    Lets people wait in line for a server for which there is no room right now.

    With ``True``, the form offers *Wait in line*, and programs that start servers can send the
    option ``"wait": true``. People who wait have no pod. When there is room, the first in line gets
    it, and the server starts. A dictionary sets more::

        c.GPUSpawner.queue = {
            "accelerators": ["a100"],
            "weights": {"thesis": 2},
            "minutes_away": 30,
        }

    ``accelerators``, ``profiles``
        What people can wait for: keys of :attr:`accelerators`, or slugs of profiles. By default,
        everything. If ``accelerators`` is set, nobody can wait for a server without a GPU, except
        by a profile.
    ``policies``
        Who can wait: only people to whom at least one of these :attr:`policies` applies; by
        default, everybody.
    ``weights``
        How much each minute of waiting counts for the members of a group, from 0.01 to 100; 1 for
        everybody else. If somebody is in several of these groups, the highest weight counts.
        Somebody who has waited for 10 minutes with a weight of 2 is ahead of those who have waited
        for 19.
    ``part_kept_free``
        A server that needs several GPUs of one node collects them: GPUs that become free on one
        node are kept for it until it fits. This is the fraction of the nodes that such a server
        could use on which GPUs are kept at a time; by default 0.25, and always at least one node.
        With a larger fraction, large servers wait for less time, and all servers together wait for
        more.
    ``places``, ``places_per_user``
        How many servers can wait at a time, and how many of one user; by default 10,000 and 1.
    ``minutes_away``
        How many minutes a place is kept for people who have closed the page, unless they have
        chosen to have the server started anyway; by default 15.
    ``minutes_idle``
        After how many minutes without use a server counts as idle; by default 30. Its use is the
        activity that JupyterHub sees, or what its GPUs compute if :attr:`gpu_use` measures that.
        People in line read how many idle servers have what they wait for, but not whose they are.

    .. versionadded:: 0.1
    """,
).tag(config=True)

kueue_queue = Unicode(
    None,
    allow_none=True,
    help="""
    Names the LocalQueue in which servers wait, if Kueue queues the pods of their namespace.

    By default it is the LocalQueue ``default`` of the namespace, if there is one. With ``""``,
    GPUSpawner names none. A server whose pod names another one, by ``KubeSpawner.extra_labels`` or
    in a profile, waits there.

    Kueue then decides when a server starts, and :attr:`queue` doesn't apply to it.

    .. versionadded:: 0.1
    """,
).tag(config=True)

kueue_priority_class = Unicode(
    "",
    help="""
    Names the WorkloadPriorityClass of servers that wait in a queue of Kueue.

    By default Kueue takes the priority of the pod. A server whose pod names another class, by
    ``KubeSpawner.extra_labels`` or in a profile, keeps that one.

    .. versionadded:: 0.1
    """,
).tag(config=True)
