"""Kubernetes' vocabulary: exact quantities, and structs with the few fields that decide.

No I/O except in `files`: bytes or plain dicts come in, frozen structs go out.

Begin with `pods`, then `quantity`.
"""
