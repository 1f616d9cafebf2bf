"""A pretend kubelet for every node of a local cluster, in one process.

It finds its nodes by an annotation, keeps them Ready by their Leases, and runs
what is bound to them.
"""
