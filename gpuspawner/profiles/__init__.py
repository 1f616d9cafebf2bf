"""The offers of hubs that have KubeSpawner's ``profile_list``, with availability and refusals.

The profiles, their form and the names of their options stay KubeSpawner's: nothing here changes
what a profile gives. An administrator's own code runs only in its user's own start.

Begin with `profiles`, then `looking`.
"""
