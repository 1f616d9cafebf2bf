"""What goes wrong here, as errors whose text tells a person what to do."""


class LocalClusterError(Exception):
    """A cluster could not be built, started or used; the text says why."""
