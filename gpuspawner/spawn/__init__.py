"""One start of a server, from the options that a user sends to the pod or its refusal."""
