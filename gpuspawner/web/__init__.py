"""The web endpoints that the hub serves for open forms and for scripts."""
