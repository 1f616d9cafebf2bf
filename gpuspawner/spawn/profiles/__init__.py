"""KubeSpawner's ``profile_list``, left as it is, with its availability and our refusals.

The profiles, their form and the names of their options stay KubeSpawner's.
"""
