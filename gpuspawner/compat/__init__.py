"""What gpuspawner uses of JupyterHub and KubeSpawner that neither promises to keep.

No other room imports or names any of it. `gpuspawner.compat.requirements` checks all of it once,
when the hub starts.
"""
