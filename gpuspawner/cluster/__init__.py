"""The live view of the cluster: the only reader of nodes and pods."""
