"""What JupyterHub and KubeSpawner call for one start: the form, the start, its pod.

Each gate ends in a yes or in a `Refusal` that says why. Gates are methods of the spawner, never
administrators' traits. If the preflight itself fails, the server starts unchecked. No gate may
await between judging and charging, or between a verdict and its reservation.

Begin with `gates`, which has them in the order in which they are called.
"""
