"""One start: its spawner, what was chosen for it, whether it may begin, and its refusal.

`gates` runs these when the hub calls, `launch` follows the pod. Nothing here knows a page, and
nothing may be kept in the spawner but the attempt: JupyterHub may run the gates on different ones.

Begin with `source`, then `attempt` and `decisions`.
"""
