"""What the administrator offers, what a user chose of it, and how both are written into a pod.

Everything from people is hostile until `parsing` has read it; offers are read strictly, once, and
are the same for everybody. Nothing here asks the cluster, or sets a trait.

Begin with `offers`, then `options`, `grant` and `manifest`.
"""
