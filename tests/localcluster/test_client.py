"""Requests to an API server that is busy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from localcluster import ApiError
from localcluster.client import Client


class Busy(Client):
    """A client whose server answers 429 to its first requests, and then that it is done."""

    def __init__(self, busy_answers: int) -> None:
        super().__init__("https://127.0.0.1:1", Path("ca"), "none")
        self.asked = 0
        self.busy_answers = busy_answers

    def _send(self, *_: Any) -> bytes:
        self.asked += 1
        if self.asked <= self.busy_answers:
            raise ApiError(429, "TooManyRequests", "storage is (re)initializing")
        return b'{"kind": "NodePool"}'


def test_a_request_is_sent_again_until_a_busy_server_takes_it() -> None:
    client = Busy(2)

    assert client.create("/apis/karpenter.sh/v1/nodepools", {}) == {"kind": "NodePool"}
    assert client.asked == 3


def test_a_server_that_stays_busy_is_an_error() -> None:
    with pytest.raises(ApiError, match="429 TooManyRequests"):
        Busy(99).get("/readyz")
