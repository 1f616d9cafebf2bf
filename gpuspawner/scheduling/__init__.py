"""What kube-scheduler would say, without asking it: pure, no hub, no I/O."""
