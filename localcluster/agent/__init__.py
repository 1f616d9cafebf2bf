"""A simulated kubelet for every node of a local cluster, in one process.

It finds its nodes by an annotation, renews their Leases so that they stay Ready, and runs the pods
that are bound to them.
"""
