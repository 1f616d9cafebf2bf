"""What the administrator offers, what a user chose of it, and how both are written into a pod.

Everything from people is hostile until `user_options` has read it. Offers are read strictly, and
are the same for everybody; those that `discovery` finds follow the nodes. Nothing here asks the
cluster or sets a trait.

Begin with `offers`, then `options`, `grant` and `manifest`.
"""
