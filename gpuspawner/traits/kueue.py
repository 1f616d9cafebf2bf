"""In which of Kueue's queues servers wait."""

from gpuspawner.traits.trait_types import Unicode

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
