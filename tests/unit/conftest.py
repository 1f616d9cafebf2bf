"""What holds for the tests of the pure rooms."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.unit.clocks import VirtualClock


@pytest.fixture(scope="package", autouse=True)
def no_certificate_authorities() -> Iterator[None]:
    """Spare each client the reading of the machine's certificate authorities, which takes 90 ms.

    No test of this folder speaks to a server that has a certificate of theirs.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", os.devnull)
        patch.setenv("SSL_CERT_DIR", os.devnull)
        yield


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> VirtualClock:
    """Let each wait take no time, and exactly as long as it should.

    It is for tests without sockets, processes and threads: the clock doesn't wait for them.
    """
    return VirtualClock(monkeypatch)
