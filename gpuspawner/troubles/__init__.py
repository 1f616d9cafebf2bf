"""What a pod's status and its events say: how far it is, what goes wrong, and how it has ended.

The readers are pure, and raise at no text, however odd or long: what they don't know is still told.

Begin with `trouble` and `steps`, then `pod_troubles`.
"""
