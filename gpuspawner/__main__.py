"""`python -m gpuspawner`: as the command `gpuspawner`."""

import sys

from gpuspawner.commands.application import main

if __name__ == "__main__":
    sys.exit(main())
