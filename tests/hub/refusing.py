"""A spawner that refuses or fails as its user_options say, or starts a real process."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from jupyterhub.spawner import SimpleLocalProcessSpawner
from markupsafe import Markup
from traitlets import default

from gpuspawner.messages import Message
from gpuspawner.start.refusal import Refusal, reporting
from tests.servers import single_user

FULL = Message(
    text="100 % of the GPUs are in use; 2 are asked.",
    html=Markup("100 % of the <b>GPUs</b> are in use; 2 are asked."),
)


class RefusingSpawner(SimpleLocalProcessSpawner):  # type: ignore[misc]
    """Options: {"refuse": PLACE}, {"fail": PLACE}, PLACE one of form, hook, start, late."""

    options_form = "<p>the form</p>"
    messages_url = ""

    def _come_to(self, place: str, options: dict[str, Any]) -> None:
        if options.get("refuse") == place:
            with reporting(self):
                raise Refusal(FULL, reason="busy")
        if options.get("fail") == place:
            raise ValueError("a real failure")

    def run_options_from_form(self, form_data: dict[str, list[str]]) -> dict[str, str]:
        options = {name: values[0] for name, values in form_data.items()}
        self._come_to("form", options)
        return options

    def apply_user_options(self, spawner: object, options: object) -> None:
        """Apply nothing; without this method the hub warns about unhandled options."""

    def run_pre_spawn_hook(self) -> None:
        self._come_to("hook", self.user_options)

    async def start(self) -> str:
        self._come_to("start", self.user_options)
        if "late" in self.user_options.values():
            await asyncio.sleep(1.2)  # the hub answers a form's POST after 1 s
        self._come_to("late", self.user_options)
        url: str = await super().start()
        return url

    @default("cmd")
    def _a_small_server(self) -> list[str]:
        return single_user.COMMAND

    def get_env(self) -> dict[str, str]:
        return {**super().get_env(), "PYTHONPATH": os.environ["PYTHONPATH"]}
