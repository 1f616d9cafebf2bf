"""Who may wait in line."""

from gpuspawner.traits.trait_types import Bool, Dict, Union

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
        What people may wait for: keys of :attr:`accelerators`, or slugs of profiles; by default,
        all of them.
    ``policies``
        Who may wait: only people to whom at least one of these :attr:`policies` applies; by
        default, everybody.
    ``weights``
        How much each minute of waiting counts for the members of a group; 1 for everybody else.
        Somebody who has waited for 10 minutes with a weight of 2 is ahead of those who have waited
        for 19.
    ``part_kept_free``
        Servers that need several GPUs of one node collect them: what becomes free on a node is kept
        for one of them until it fits. This is how many nodes are kept at a time, as a part of those
        that such a server could use, or one node if that is more; by default 0.25. With a larger
        part, large servers wait for less time, and all together for more. With 0, it is one node.
    ``places``, ``places_per_user``
        How many servers may wait at a time, and how many of one user; by default 10,000 and 1.
    ``minutes_away``
        How many minutes a place is kept for people who have closed the page, unless they have
        chosen to have the server started anyway; by default 15.
    ``minutes_idle``
        After how many minutes without use a server counts as idle. People in line are told how
        many idle servers have what they wait for, never whose they are; by default 30.

    .. versionadded:: 0.1
    """,
).tag(config=True)
