"""The hub's endpoints for open forms and for scripts.

They answer about a server only to whoever may start it, a limited number of questions for each
user, and take no room. `broadcast` keeps open forms current.

Begin with `handlers`.
"""
