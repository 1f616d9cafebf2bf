"""Makers of clusters, pods, hubs and requests, which tests of several rooms share."""
