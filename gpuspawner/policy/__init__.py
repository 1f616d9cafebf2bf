"""Who may have what: grants or denies a request by the offers and the administrator's policies."""

from gpuspawner.policy.grant import Denial, DenialReason, Grant, decide

__all__ = ["Denial", "DenialReason", "Grant", "decide"]
