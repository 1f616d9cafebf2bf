"""Kueue's queues and quotas, read as Kueue itself decides, for pods that name one.

Nothing here writes to Kueue or reserves for it: a pod waits in Kueue's line, and in no other.

Begin with `queues`, then `judging`.
"""
