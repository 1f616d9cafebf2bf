"""Karpenter itself, built from its Go module, with the simulated nodes of its kwok provider."""
