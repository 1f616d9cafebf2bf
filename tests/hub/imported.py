"""What every hub imports and makes alike, done once in the process from which hubs are forked."""

from __future__ import annotations

from contextlib import suppress

import alembic.script  # noqa: F401
from jupyterhub.app import JupyterHub
from jupyterhub.traitlets import EntryPointType
from sqlalchemy.orm import configure_mappers

import gpuspawner.configuration  # noqa: F401
import tests.hub.state_page  # noqa: F401
from gpuspawner import runtime
from gpuspawner.cluster.client import Client
from gpuspawner.preflight.dry_runs import DryRun


class PatientDryRun(DryRun):
    """A machine that stands still for seconds costs no test the answer of a dry run."""

    def __init__(self, client: Client, _: float) -> None:
        super().__init__(client, 20)


vars(runtime)["DryRun"] = PatientDryRun

configure_mappers()
for trait in JupyterHub.class_traits(config=True).values():
    if isinstance(trait, EntryPointType):
        for installed in trait.load_entry_points().values():
            with suppress(Exception):  # as the hub does with what can't be imported
                installed.load()
