"""The line of people who wait for GPUs: who is next, where, and how long it may take.

Pure: it knows neither the hub nor the cluster. `Room` is what it asks about nodes.
"""
