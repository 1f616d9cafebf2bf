"""Admission: what the API server makes of a pod before it exists, or why it does not take it."""
