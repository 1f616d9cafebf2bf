"""Kueue's queues, for pods that name one.

Nothing here writes to Kueue or reserves for it. A pod is refused only if its queue is closed or
could never admit it; else it waits in Kueue's line, and in no other.

Begin with `queues`, then `workloads`.
"""
