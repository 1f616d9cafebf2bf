"""Kubernetes' vocabulary: exact quantities, and structs with the few fields that decide.

No I/O: bytes or plain dicts come in, frozen structs go out.

Begin with `pods`, then `quantity`.
"""
