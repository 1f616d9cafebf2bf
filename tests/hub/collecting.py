"""An endpoint of a hub that tells what Python's garbage collector has to look through."""

import gc
import json

from tornado.web import RequestHandler


class Collected(RequestHandler):
    """Collects everything, then answers how many objects are tracked, and how many are frozen."""

    def get(self) -> None:
        """Answer."""
        gc.collect()
        self.finish(json.dumps({"tracked": len(gc.get_objects()), "frozen": gc.get_freeze_count()}))
