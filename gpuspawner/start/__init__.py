"""One start: its spawner, what was chosen for it, whether it may begin, and its refusal.

`gates` runs these when the hub calls, `launch` follows the pod. Nothing here knows a page, and
the first gate may leave nothing in the spawner: JupyterHub may run the second on another one.

Begin with `source`, then `attempt` and `asking_preflight`.
"""
