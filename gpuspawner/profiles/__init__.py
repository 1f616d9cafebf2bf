"""Availability and refusals for KubeSpawner's ``profile_list``.

The profiles, their form and the names of their options stay KubeSpawner's.
"""
