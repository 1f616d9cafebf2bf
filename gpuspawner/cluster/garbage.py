"""Keeps Python's garbage collector from looking again and again at what never becomes garbage.

Python collects in full each time when enough new objects have lasted. It then looks through
everything that the process has, and holds the event loop meanwhile. In a hub that has only started,
this is 300,000 objects, almost all of them modules, classes and functions.
"""

import gc

_is_done = False


def freeze() -> None:
    """Exempt all objects that exist now from later collections, if Python collects at all.

    It collects the young objects first. Looking through the old ones takes longer than importing
    all of gpuspawner, and finds almost nothing: 460 of 315,000 in a hub. An exempt object is still
    freed when the last reference to it goes. Only if it is part of a cycle, it then stays in
    memory. So only the first call in a process does something: the first hub's start.
    """
    global _is_done  # noqa: PLW0603, there is one garbage collector per process
    if _is_done or not gc.isenabled() or not gc.get_threshold()[0]:
        return
    _is_done = True
    gc.collect(1)
    gc.freeze()
    # Python takes the number of objects that the last full collection left as the measure for the
    # next one. Without this, it would come so late that it has 75,000 new objects to look through.
    gc.collect()


def collect_young() -> None:
    """Collect what is garbage among new objects, if Python collects at all.

    Python does this itself as soon as many more objects were made than freed. Work that replaces
    old objects frees as many as it makes, so the garbage of everything else grows meanwhile, until
    one collection holds the event loop for long.
    """
    if gc.isenabled() and gc.get_threshold()[0]:
        gc.collect(0)
