"""Imported before anything else, this keeps a library from taking seconds of each process.

jsonschema reads `rfc3987_syntax` wherever it is installed, and JupyterHub needs both. At each
import it compiles a grammar, which takes 3 s. Nothing here asks whether a text is an IRI.
"""

import sys

sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # an import of it fails
