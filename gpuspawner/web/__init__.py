"""The hub's endpoints for open forms and for scripts.

They answer about a server only to whoever may start it, a limited number of questions for each
user, and take no room. `form` draws the spawn form, and `stream` keeps it current.

Begin with `handlers`.
"""
