"""KubeSpawner's ``profile_list``, left as it is: its states, and its refusals before a pod exists.

The profiles, their form and the names of their options stay KubeSpawner's. What is added: how it
stands with each of them, and the gates.
"""

from gpuspawner.profiles.profiles import Profiles
from gpuspawner.profiles.spawning import ChoosesProfiles
from gpuspawner.profiles.trial import Listing, check, listing

__all__ = ["ChoosesProfiles", "Listing", "Profiles", "check", "listing"]
