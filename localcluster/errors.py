"""The package's errors; their text tells the user what to do."""


class LocalClusterError(Exception):
    """A cluster could not be built, started or used; the text says why."""
