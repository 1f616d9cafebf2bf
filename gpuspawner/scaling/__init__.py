"""Nodes that don't exist yet but can be added."""
