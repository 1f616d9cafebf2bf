"""One start of a server, from the options that somebody sends until the pod is there or refused."""
