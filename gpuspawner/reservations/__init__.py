"""What is promised to one start, on nodes and of limits, until the view shows its pod.

A promise is made only if its pod has room wherever the other promised pods go. However a start
ends, its promise ends once: nothing may be left behind.

Begin with `reservations`; `start/sending.py` sends a pod and ends its promise.
"""
