"""Decides about a pod before it exists: start it, let it wait for a node, or refuse it.

A no only if no node that can come would help, or if admission, a quota or people in line are in the
way; what isn't known is a start. Verdicts are computed from the state of one moment, and nothing
here awaits between a verdict and its promise. Only the dry run asks the API server.

Begin with `preflight` and `decision`, then `decider`.
"""
