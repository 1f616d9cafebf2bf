"""`python -m gpuspawner`: as the command `gpuspawner`."""

import sys

from gpuspawner.doctor.application import main

if __name__ == "__main__":
    sys.exit(main())
