"""What administrators ask, by the commands of `gpuspawner` and in the hub's log.

It needs no more rights than the hub, and changes nothing, but `doctor --start` starts a server and
removes it. `warm`, `rbac` and `helm_values` print files; the last one imports no hub.

Begin with `application`; each file of `checks` is one concern of the doctor.
"""
