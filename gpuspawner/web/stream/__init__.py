"""Streams that keep open forms current: the hub sends what they show whenever it changes."""
