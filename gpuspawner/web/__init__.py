"""What the hub serves under ``/hub/gpuspawner/`` once `gpuspawner.configure(c)` was called."""

from gpuspawner.web.showing import ShowsForm

__all__ = ["ShowsForm"]
