from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.helm.chart import Chart


@pytest.fixture(scope="session")
def chart() -> Chart:
    folder = os.environ.get("GPUSPAWNER_Z2JH_CHART")
    if not folder:
        pytest.skip(
            "chart: GPUSPAWNER_Z2JH_CHART names no folder with values.yaml and values.schema.json"
            " of the Zero-to-JupyterHub chart, which is not ours to ship"
        )
    return Chart(Path(folder))
