"""What the hub serves for open forms and for scripts."""
