"""The unofficial names of JupyterHub and KubeSpawner that gpuspawner uses.

No other package imports or calls any of them; `gpuspawner.spawner` overrides some. When the hub
starts, `gpuspawner.compat.required_names` checks them all once.

Begin with `required_names`, then `kubespawner` and `jupyterhub`.
"""
