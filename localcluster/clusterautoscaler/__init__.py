"""A Cluster Autoscaler, played after the documented behaviour of the real one.

The real one can't be built from the Go module proxy. This one adds and removes simulated nodes, and
writes the same ConfigMap and the same events, in the formats of version 1.36.
"""
