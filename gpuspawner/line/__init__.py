"""The line of people who wait for GPUs: who is next, where, and how long it may take.

The rule itself is pure, so that a simulation and property tests run the very code that the hub
runs; `room.Room` is what it asks about nodes.
"""
