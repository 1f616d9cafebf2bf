"""How the hub's own process runs."""

from gpuspawner.traits.trait_types import Bool

gc_freeze = Bool(
    True,
    help="""
    Sets whether Python's garbage collector leaves alone what the hub has when it starts.

    By default it is ``True``: while the hub starts, gpuspawner collects recent garbage, then calls
    ``gc.freeze()``, once. Later full collections, during which the hub answers nobody, then take a
    few milliseconds and not more than a hundred. Set it to ``False`` to look for a leak:
    ``gc.get_objects()``, which tools for this use, lists no frozen objects.

    .. versionadded:: 0.1
    """,
).tag(config=True)
