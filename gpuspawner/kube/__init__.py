"""The vocabulary of Kubernetes: exact quantities and the few fields of its objects that decide.

No I/O: bytes or plain dicts come in, frozen structs go out.
"""
