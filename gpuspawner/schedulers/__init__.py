"""Which schedulers filter nodes by kube-scheduler's default profile, and how the hub knows it."""
