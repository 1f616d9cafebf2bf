"""Kueue's quotas and queues, read as Kueue itself decides.

Pure: it knows neither the hub nor the cluster's nodes.
"""
