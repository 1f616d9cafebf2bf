"""A page of the hub, for tests only: what it sees of the cluster, and what it has promised."""

from __future__ import annotations

from tornado.web import RequestHandler

from gpuspawner import runtime

SEEN = "tests.gpuspawner/seen"
"""The annotation of a node that tells which of its versions the hub sees."""


class StatePage(RequestHandler):
    """Answers with the state of this moment, and forgets what a new hub doesn't know."""

    def check_xsrf_cookie(self) -> None:
        """Let tests post without a cookie."""

    def get(self) -> None:
        """Answer."""
        running = runtime.running()
        state, preflight = running.view.state, running.preflight
        nodes = {name: node for name, info in state.nodes.items() if (node := info.node)}
        self.write(
            {
                "nodes": {
                    name: (node.metadata.annotations or {}).get(SEEN, "")
                    for name, node in nodes.items()
                },
                "pods": sorted([*state.pods, *state.unbound_pods]),
                "promises": len(preflight.reservations),
                "in line": len(preflight.line),
            }
        )

    def post(self) -> None:
        """Forget how long people have waited, from which the hub tells how long one waits."""
        line = runtime.running().line
        if line is None or line._waiting is None:
            return
        waits = line._waiting._waits
        waits._ended.clear()
        waits._told.clear()
