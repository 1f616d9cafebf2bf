"""What administrators ask, by `gpuspawner doctor`, `capacity` and `explain`, and in the hub's log.

It needs no more rights than the hub, and changes nothing, but `doctor --start` starts a server and
removes it. `helm_values` prints the files to install it with, and imports no hub.

Begin with `application`; each file of `checks` is one concern of the doctor.
"""
