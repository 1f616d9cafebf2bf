"""Who may have what: the administrator's policies, what counts toward limits, what is left.

Policies only take away. In the hub, whose server a pod is and what was granted are never read from
the pod: whoever may change pods could write them. What a limit has to count and can't be counted
isn't allowed. Without policies, nothing is denied.

Begin with `policies` and `policy_gates`, then `accounts`.
"""
