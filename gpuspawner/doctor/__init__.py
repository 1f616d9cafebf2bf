"""What administrators ask, by `gpuspawner doctor`, `capacity` and `explain`, and in the hub's log.

It changes nothing, in the hub or in the cluster, and never asks for more rights than the hub has.

Begin with `application`; each file of `checks` is one concern of the doctor.
"""
