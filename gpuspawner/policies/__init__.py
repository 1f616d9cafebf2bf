"""Who may have what: the administrator's policies, what counts toward limits, what is left.

Policies only narrow the offers; they choose nothing. What anybody writes into a pod counts for
nothing, and what can't be counted isn't allowed. Without policies, nothing here is asked.

Begin with `policies` and `policing`, then `accounts`.
"""
