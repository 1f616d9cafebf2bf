"""The offers of hubs that have KubeSpawner's ``profile_list``, with availability and refusals.

The profiles, their form and the names of their options stay KubeSpawner's: nothing here changes
what a profile gives. Functions in a list may run for a form too, always on a copy of
the spawner; hooks run only in their user's own start.

Begin with `profiles`, then `page_availability`.
"""
