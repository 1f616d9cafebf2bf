"""`python -m gpuspawner.schema jupyterhub_config.py`: print the options as a JSON Schema."""

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path

from gpuspawner.configuration import ConfigurationError, load, offered
from gpuspawner.gates.wait_option import in_schema
from gpuspawner.offers import options
from gpuspawner.offers.shapes import OfferError

DISCOVERED = (
    "GPUSpawner.accelerators is empty, so the running hub discovers the GPU models; "
    "this schema doesn't list them."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the schema and return 0; return 2 if the configuration would stop a hub."""
    parser = argparse.ArgumentParser(prog="python -m gpuspawner.schema", description=__doc__)
    parser.add_argument(
        "configuration", type=Path, help="the hub's configuration file; it is executed"
    )
    path: Path = parser.parse_args(arguments).configuration
    try:
        with redirect_stdout(sys.stderr):  # the file may print, as that of Zero to JupyterHub does
            offers, queue = offered(load(path))
    except (ConfigurationError, OfferError) as error:
        print(f"{path}: {error}", file=sys.stderr)
        return 2
    if not offers.accelerators:
        print(DISCOVERED, file=sys.stderr)
    print(json.dumps(in_schema(options.schema(offers), queue), indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
