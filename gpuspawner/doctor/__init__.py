"""What administrators ask by the commands of `gpuspawner`.

It needs no more rights than the hub. Only two commands change anything: `doctor --start` starts a
server and removes it, and `report --forget` removes a user from files. `warm`, `rbac` and `values`
print files; the last two import no hub.

Begin with `application`; each file of `checks` is one concern of the doctor.
"""
