"""Keeps servers without a GPU off the accelerators' nodes."""

from collections.abc import Iterable

from gpuspawner.manifest import node_affinity
from gpuspawner.manifest.errors import ManifestError
from gpuspawner.offers import Accelerator

MOST_TERMS = 64
"""More node selector terms than this in every pod would slow the scheduler and the hub down."""


def off(accelerators: Iterable[Accelerator]) -> node_affinity.Terms:
    """Return node selector terms that match the nodes that none of these accelerators selects.

    Without accelerators there are no terms. Only the accelerators' own selectors are negated, not,
    for example, every label for a GPU product: a node may have GPUs that aren't on offer.

    The negation of a selector with two labels has two terms, "not this or not that". So ten such
    selectors give 2^10 terms, unless they share a label or each accelerator has one label only.

    Raises:
        ManifestError: There would be more than `MOST_TERMS`.
    """
    every: node_affinity.Terms = ()
    for accelerator, term in ((it, term) for it in accelerators for term in _nodes_of(it)):
        avoided = node_affinity.neither((term,))
        every = node_affinity.both(every, avoided) if every else avoided
        if len(every) > MOST_TERMS:
            reason = (
                f"to keep other servers off its nodes too takes more than {MOST_TERMS} node "
                "selector terms; select the nodes of every accelerator by one label alone, or "
                "taint them and leave keep_cpu_servers_off_accelerators out"
            )
            raise ManifestError(accelerator.key, reason)
    return every


def _nodes_of(accelerator: Accelerator) -> node_affinity.Terms:
    labels = node_affinity.from_labels(accelerator.node_selector)
    terms = node_affinity.read(accelerator.node_affinity)
    if accelerator.node_selector and accelerator.node_affinity:
        return node_affinity.both(labels, terms)
    return terms or labels
