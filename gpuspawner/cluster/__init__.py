"""The live view of the cluster: the only reader of nodes, pods, and autoscalers' objects.

One writer, the watches; evaluations read and never await. It says how fresh it is, and never shows
more than it knows. No list or change holds the hub's event loop.

Begin with `view`, then `watch`.
"""
