"""Kueue itself, built from its Go module, which queues pods of chosen namespaces."""
