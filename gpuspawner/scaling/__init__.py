"""The nodes that don't exist yet but can come.

More rights and more objects never turn "a node may come" into a wrong no. Nothing here adds
or removes a node.

Begin with `pools`, then `nodes_to_come`.
"""
