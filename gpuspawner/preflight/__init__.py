"""Decides before a pod exists: start it, let it wait for a new node, or refuse it."""
