"""A page of the hub that counts its promises: the reservations and the pledges."""

from __future__ import annotations

from tornado.web import RequestHandler

from gpuspawner import runtime


class Left(RequestHandler):
    """Answers with both numbers; a hub without a spawner yet has none."""

    def get(self) -> None:
        running = runtime._runtime
        kept = running and (running.preflight.reservations, running.accounts.pledges._pledges)
        reservations, pledges = kept or ((), ())
        self.write({"reservations": len(reservations), "pledges": len(pledges)})
