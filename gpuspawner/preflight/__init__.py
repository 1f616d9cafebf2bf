"""The answer before a pod exists: start, wait for a node, or refuse, with facts."""
