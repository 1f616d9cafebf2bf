"""A pytest plugin that gives KubeSpawner's own tests a GPUSpawner: ``-p tests.stock.substituted``.

Only the package's public name changes. KubeSpawner's own modules keep their class.
"""

import kubespawner

from gpuspawner import GPUSpawner

kubespawner.KubeSpawner = GPUSpawner
