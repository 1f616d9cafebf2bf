"""Who holds GPUs, whether they are used, and how they are given back: ``GPUSpawner.gpu_use``.

It reads what `gpuspawner.troubles.facts` says has happened, and the live view. No gate asks it, and
nothing of it may hold a start up or stop the hub: what it doesn't know changes nothing.

Begin with `hub_use`.
"""
