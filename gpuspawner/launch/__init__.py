"""From the pod that was sent to a server that listens, and how servers end.

A start ends early only if its server can't come up any more.

Begin with `run`, then `launching`.
"""
