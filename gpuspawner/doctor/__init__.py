"""What administrators ask, by `gpuspawner doctor`, `capacity` and `explain`, and in the hub's log.

It changes no object of the cluster, and needs no more rights than the hub. `shipped` prints the
files to install it with.

Begin with `application`; each file of `checks` is one concern of the doctor.
"""
