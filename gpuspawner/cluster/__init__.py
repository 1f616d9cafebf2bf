"""The live view of the cluster: gpuspawner's only reader of nodes, storage and all pods.

One writer, the watches; evaluations read and never await. It says how fresh it is, and never shows
more than it knows. No list or change holds the hub's event loop.

Begin with `view`, then `list_watch`.
"""
