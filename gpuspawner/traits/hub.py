"""What the hub keeps of the use of GPUs, and how its own process runs."""

from gpuspawner.traits.trait_types import Bool, Dict, Union

gpu_use = Union(
    [Bool(), Dict()],
    default_value=False,
    help="""
    Keeps a record of who holds GPUs, shows it, and measures whether they are used.

    With ``True``, the hub remembers what happens to servers (granted, refused, started, ended, …)
    while it runs, emits it as JupyterHub events with the schema
    ``https://schema.jupyter.org/gpuspawner/server``, adds figures to ``/hub/metrics``, and has a
    page at ``/hub/gpuspawner/gpus``. A dictionary sets more::

        c.GPUSpawner.gpu_use = {
            "directory": "/srv/jupyterhub/gpu-use",
            "prometheus": "http://prometheus-server.monitoring",
            "notify": write_mail,
        }

    ``directory``
        The directory for the record's files, one for each day. Its path begins with ``/``, and no
        other hub has the same. By default, the record is in memory only. If the hub can't write
        there, it logs that, and goes on.
    ``days``
        For how many days the files are kept, from 1 to 366; by default 30. They take at most 256
        MiB: if a new day needs more room, the oldest are removed earlier. A day's file takes at
        most 32 MiB; what happens after that isn't kept. Once it is half full, refusals and
        what happens in the line aren't kept, so that somebody who is refused in a loop doesn't push
        out who keeps which server.
    ``prometheus``
        The address of a Prometheus that scrapes NVIDIA's DCGM exporter, with a name and a password
        if it asks for them, percent-encoded: ``https://hub:a%2Fb@prometheus.example.org``. Without
        this key, the use of GPUs isn't known; the key ``idle`` of policies needs it.
    ``prometheus_labels``
        The labels that this cluster's series have, such as ``{"cluster": "prod"}``, if Prometheus
        also has those of other clusters. Without this key, a pod of the same namespace and name in
        another cluster counts as the server's own.
    ``notify``
        A function that tells an owner that a server will be stopped, for example by mail. It gets a
        dictionary with ``user``, ``server`` (``""`` for the default server), ``accelerator``,
        ``gpus``, ``idle_seconds`` and ``stops_in_seconds``. It can be asynchronous. The hub calls
        it once for each warning. For a server whose owner has neither used a GPU nor kept the
        server meanwhile, the next call comes at the earliest when the time that counts (``after``
        or ``after_if_others_wait`` in the :attr:`policies`' ``idle``) is over. No start waits for
        the function, and the hub logs its errors. It runs for at most ten owners at once; a call
        that hasn't returned after three minutes is logged, and the next one takes its place. If a
        hundred such calls still hang, or if no seconds are left when a call gets its turn, the log
        names the owners who aren't told.

    .. versionadded:: 0.1
    """,
).tag(config=True)

gc_freeze = Bool(
    True,
    help="""
    Sets whether Python's garbage collector leaves alone what the hub has when it starts.

    By default it is ``True``: while the hub starts, gpuspawner collects recent garbage, then calls
    ``gc.freeze()``, once. Later full collections, during which the hub answers nobody, then take a
    few milliseconds instead of more than a hundred. Set it to ``False`` to look for a leak:
    ``gc.get_objects()``, which tools for this use, lists no frozen objects.

    .. versionadded:: 0.1
    """,
).tag(config=True)
