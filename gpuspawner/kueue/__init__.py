"""Kueue's queues, for pods that name one.

Nothing here writes to Kueue, reserves for it, or foretells whether it admits a pod: a pod waits in
Kueue's line, and in no other.

Begin with `queues`, then `workloads`.
"""
