"""What JupyterHub and KubeSpawner call for one start: the form, the start, its pod.

Each gate ends in a yes or in a `Refusal` that says why. Gates are methods of the spawner, never
administrators' traits, and no fault of ours is a reason for nobody to get a server. Counting and
reserving happen in one tick: no gate may await between a verdict and its promise.

Begin with `controller`, which has the gates in the order in which they are called.
"""
