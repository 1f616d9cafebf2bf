"""Admission: how the API server would change a pod, or why it rejects the pod."""
