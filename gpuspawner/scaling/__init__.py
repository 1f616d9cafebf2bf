"""What no present node can tell: the nodes that could still come."""
