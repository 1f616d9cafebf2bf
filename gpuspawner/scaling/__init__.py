"""The nodes that don't exist yet but can come, and the wait for one.

More rights, more objects and more knowledge never turn a try into a wrong no. Nothing here adds
or removes a node.

Begin with `pools`, then `nodes_to_come`.
"""
