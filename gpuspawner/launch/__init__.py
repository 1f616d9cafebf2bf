"""From the pod that was sent to a server that listens, and how servers end.

The readers are pure, and raise at no text, however odd or long: what they don't know is still told.
A start ends early only if its server can't come up any more.

Begin with `launching`, then `steps` and `troubles`.
"""
