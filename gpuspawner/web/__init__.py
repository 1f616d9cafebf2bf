"""The hub's endpoints for open forms and for scripts.

They answer about a server only to whoever may start it, within limits for each user, and take
nothing of what a gate decides.

Begin with `handlers`.
"""
